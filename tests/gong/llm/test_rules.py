import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.llm.providers.rules import (
    List,
    Puzzle,
    Read,
    Replace,
    Run,
    Search,
    Think,
    Write,
    parse,
)

ONE_STEP = {
    "read README.md": Read("README.md"),
    "Read README.md.": Read("README.md"),
    "please show me the file notes.txt": Read("notes.txt"),
    "cat ./a/b": Read("./a/b"),
    "OPEN 'my file.txt'": Read("my file.txt"),
    "read `a.txt`": Read("a.txt"),
    "show the contents of src/x.py": Read("src/x.py"),
    "what's in notes.txt?": Read("notes.txt"),
    "read Makefile": Read("Makefile"),
    "read README.md and tell me what it says": Read("README.md"),
    "could you read my notes.txt": Read("notes.txt"),
    "list": List("."),
    "ls": List("."),
    "ls -la": List("."),
    "ls src": List("src"),
    "list src/": List("src/"),
    "list ..": List(".."),
    "list files": List("."),
    "list files in src": List("src"),
    "list the files in the current directory": List("."),
    "list the src folder": List("src"),
    "show files in src": List("src"),
    "what files are here?": List("."),
    "search TODO": Search("TODO", "."),
    "search needle.": Search("needle", "."),
    'search for "foo bar" in src': Search("foo bar", "src"),
    "search for foo bar in src": Search("foo bar", "src"),
    "search src for TODO": Search("TODO", "src"),
    "search in src for TODO": Search("TODO", "src"),
    "look for TODO in the project": Search("TODO", "."),
    "grep TODO": Search("TODO", "."),
    "grep -rn TODO src": Search("TODO", "src"),
    "find def main in gong/": Search("def main", "gong/"),
    "run ls -la": Run("ls -la"),
    "run `wc -l README.md`.": Run("wc -l README.md"),
    'run "echo a then b"': Run("echo a then b"),
    "execute the command: ls": Run("ls"),
    "$ echo hi then bye": Run("echo hi then bye"),
    "$ if true; then echo yes; fi": Run("if true; then echo yes; fi"),
    "write a.txt with hello world": Write("a.txt", "hello world"),
    'write a.txt with "one then two"': Write("a.txt", "one then two"),
    'write "hello" to a.txt': Write("a.txt", "hello"),
    "write hello to a.txt": Write("a.txt", "hello"),
    "create file notes.md containing x": Write("notes.md", "x"),
    "create an empty file x.txt": Write("x.txt", ""),
    "write out.py with:\n\n```python\nprint(1)\n\nthen()\n```": Write(
        "out.py", "print(1)\n\nthen()\n"
    ),
    "write a.txt with\n```\n```": Write("a.txt", ""),
    "replace foo with bar in a.txt": Replace("a.txt", "foo", "bar"),
    'replace "a b" with \'c d\' in "my file.txt"': Replace("my file.txt", "a b", "c d"),
    "in a.txt replace foo with bar": Replace("a.txt", "foo", "bar"),
    "change x to y in z.py": Replace("z.py", "x", "y"),
    'replace foo with "" in a.txt': Replace("a.txt", "foo", ""),
    "think": Think(""),
    "think about life": Think("life"),
    "think hard about: life": Think("life"),
    "hello": Puzzle("hello"),
    "what is the weather?": Puzzle("what is the weather?"),
    "show me a joke": Puzzle("show me a joke"),
    "make test": Puzzle("make test"),
}


@pytest.mark.parametrize("prompt", ONE_STEP)
def test_a_plain_request_is_one_step(prompt):
    assert parse(prompt) == (ONE_STEP[prompt],)


SEVERAL = {
    "": (),
    " \n\t\n": (),
    "then": (),
    "read README.md then run wc -l README.md": (Read("README.md"), Run("wc -l README.md")),
    "read a, then list src; then read b and then run x": (
        Read("a"),
        List("src"),
        Read("b"),
        Run("x"),
    ),
    "read a\r\nread b\r\n\r\n$ ls\nlist src": (Read("a"), Read("b"), Run("ls"), List("src")),
    "1. read a\n2. read b": (Read("a"), Read("b")),
    "- $ date\n- $ ls": (Run("date"), Run("ls")),
    "think about life then read README.md": (Think("life"), Read("README.md")),
    'read "a then b.txt" then list files': (Read("a then b.txt"), List(".")),
    "list files then $ date": (List("."), Run("date")),
    "write a.txt:\n```\none\nthen two\n```\nthen read a.txt": (
        Write("a.txt", "one\nthen two\n"),
        Read("a.txt"),
    ),
    "I am lost.\nWho are you?\nread a.txt": (
        Puzzle("I am lost.\nWho are you?"),
        Read("a.txt"),
    ),
}


@pytest.mark.parametrize("prompt", SEVERAL)
def test_then_and_line_ends_part_steps_but_not_inside_quotes_fences_and_shell_lines(prompt):
    assert parse(prompt) == SEVERAL[prompt]


@given(st.text())
def test_any_text_gives_steps(prompt):
    assert isinstance(parse(prompt), tuple)


VERBS = "read list search run write replace think show find"
REST = "then with in to for the file a.txt src ls grep \" ' ` ``` $ . 1."
WORDS = st.sampled_from([*VERBS.split(), *REST.split(), "\n", " "])


@given(st.lists(WORDS, max_size=40).map(" ".join))
def test_any_order_of_its_own_words_gives_steps(prompt):
    assert all(step is not None for step in parse(prompt))


@pytest.mark.parametrize(
    "prompt",
    ["\n" * 100_000 + "```", " " * 1_000_000, '"' * 99_999, "replace " + "with in " * 100_000],
    ids=["lines", "blanks", "quotes", "words"],
)
def test_huge_prompts_are_read_in_one_go(prompt):
    assert len(parse(prompt)) <= 1
