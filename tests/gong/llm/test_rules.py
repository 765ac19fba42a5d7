import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.llm.offline.rules import (
    ListStep,
    PuzzleStep,
    ReadStep,
    ReplaceStep,
    RunStep,
    SearchStep,
    ThinkStep,
    WriteStep,
    parse_request,
)

ONE_STEP = {
    "read README.md": ReadStep("README.md"),
    "Read README.md.": ReadStep("README.md"),
    "please show me the file notes.txt": ReadStep("notes.txt"),
    "cat ./a/b": ReadStep("./a/b"),
    "OPEN 'my file.txt'": ReadStep("my file.txt"),
    "read `a.txt`": ReadStep("a.txt"),
    "show the contents of src/x.py": ReadStep("src/x.py"),
    "what's in notes.txt?": ReadStep("notes.txt"),
    "read Makefile": ReadStep("Makefile"),
    "read README.md and tell me what it says": ReadStep("README.md"),
    "could you read my notes.txt": ReadStep("notes.txt"),
    "list": ListStep("."),
    "ls": ListStep("."),
    "ls -la": ListStep("."),
    "ls src": ListStep("src"),
    "list src/": ListStep("src/"),
    "list ..": ListStep(".."),
    "list files": ListStep("."),
    "list files in src": ListStep("src"),
    "list the files in the current directory": ListStep("."),
    "list the src folder": ListStep("src"),
    "show files in src": ListStep("src"),
    "what files are here?": ListStep("."),
    "search TODO": SearchStep("TODO", "."),
    "search needle.": SearchStep("needle", "."),
    'search for "foo bar" in src': SearchStep("foo bar", "src"),
    "search for foo bar in src": SearchStep("foo bar", "src"),
    "search src for TODO": SearchStep("TODO", "src"),
    "search in src for TODO": SearchStep("TODO", "src"),
    "look for TODO in the project": SearchStep("TODO", "."),
    "grep TODO": SearchStep("TODO", "."),
    "grep -rn TODO src": SearchStep("TODO", "src"),
    "find def main in gong/": SearchStep("def main", "gong/"),
    "run ls -la": RunStep("ls -la"),
    "run `wc -l README.md`.": RunStep("wc -l README.md"),
    'run "echo a then b"': RunStep("echo a then b"),
    "execute the command: ls": RunStep("ls"),
    "$ echo hi then bye": RunStep("echo hi then bye"),
    "$ if true; then echo yes; fi": RunStep("if true; then echo yes; fi"),
    "write a.txt with hello world": WriteStep("a.txt", "hello world"),
    'write a.txt with "one then two"': WriteStep("a.txt", "one then two"),
    'write "hello" to a.txt': WriteStep("a.txt", "hello"),
    "write hello to a.txt": WriteStep("a.txt", "hello"),
    "create file notes.md containing x": WriteStep("notes.md", "x"),
    "create an empty file x.txt": WriteStep("x.txt", ""),
    "write out.py with:\n\n```python\nprint(1)\n\nthen()\n```": WriteStep(
        "out.py", "print(1)\n\nthen()\n"
    ),
    "write a.txt with\n```\n```": WriteStep("a.txt", ""),
    "replace foo with bar in a.txt": ReplaceStep("a.txt", "foo", "bar"),
    'replace "a b" with \'c d\' in "my file.txt"': ReplaceStep("my file.txt", "a b", "c d"),
    "in a.txt replace foo with bar": ReplaceStep("a.txt", "foo", "bar"),
    "change x to y in z.py": ReplaceStep("z.py", "x", "y"),
    'replace foo with "" in a.txt': ReplaceStep("a.txt", "foo", ""),
    "think": ThinkStep(""),
    "think about life": ThinkStep("life"),
    "think hard about: life": ThinkStep("life"),
    "hello": PuzzleStep("hello"),
    "what is the weather?": PuzzleStep("what is the weather?"),
    "show me a joke": PuzzleStep("show me a joke"),
    "make test": PuzzleStep("make test"),
}


@pytest.mark.parametrize("prompt", ONE_STEP)
def test_a_plain_request_is_one_step(prompt):
    assert parse_request(prompt) == (ONE_STEP[prompt],)


SEVERAL = {
    "": (),
    " \n\t\n": (),
    "then": (),
    "read README.md then run wc -l README.md": (ReadStep("README.md"), RunStep("wc -l README.md")),
    "read a, then list src; then read b and then run x": (
        ReadStep("a"),
        ListStep("src"),
        ReadStep("b"),
        RunStep("x"),
    ),
    "read a\r\nread b\r\n\r\n$ ls\nlist src": (
        ReadStep("a"),
        ReadStep("b"),
        RunStep("ls"),
        ListStep("src"),
    ),
    "1. read a\n2. read b": (ReadStep("a"), ReadStep("b")),
    "- $ date\n- $ ls": (RunStep("date"), RunStep("ls")),
    "think about life then read README.md": (ThinkStep("life"), ReadStep("README.md")),
    'read "a then b.txt" then list files': (ReadStep("a then b.txt"), ListStep(".")),
    "list files then $ date": (ListStep("."), RunStep("date")),
    "write a.txt:\n```\none\nthen two\n```\nthen read a.txt": (
        WriteStep("a.txt", "one\nthen two\n"),
        ReadStep("a.txt"),
    ),
    "I am lost.\nWho are you?\nread a.txt": (
        PuzzleStep("I am lost.\nWho are you?"),
        ReadStep("a.txt"),
    ),
}


@pytest.mark.parametrize("prompt", SEVERAL)
def test_then_and_line_ends_part_steps_but_not_inside_quotes_fences_and_shell_lines(prompt):
    assert parse_request(prompt) == SEVERAL[prompt]


@given(st.text())
def test_any_text_gives_steps(prompt):
    assert isinstance(parse_request(prompt), tuple)


VERBS = "read list search run write replace think show find"
REST = "then with in to for the file a.txt src ls grep \" ' ` ``` $ . 1."
WORDS = st.sampled_from([*VERBS.split(), *REST.split(), "\n", " "])


@given(st.lists(WORDS, max_size=40).map(" ".join))
def test_any_order_of_its_own_words_gives_steps(prompt):
    assert all(step is not None for step in parse_request(prompt))


@pytest.mark.parametrize(
    "prompt",
    ["\n" * 100_000 + "```", " " * 1_000_000, '"' * 99_999, "replace " + "with in " * 100_000],
    ids=["lines", "blanks", "quotes", "words"],
)
def test_huge_prompts_are_read_in_one_go(prompt):
    assert len(parse_request(prompt)) <= 1
