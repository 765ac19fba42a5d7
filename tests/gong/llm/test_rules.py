import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.llm.offline.rules import Step, parse_request


def read(path):
    return Step("read", path=path)


def listing(path):
    return Step("list", path=path)


def search(text, path):
    return Step("search", text, path)


def run(command):
    return Step("run", command)


def write(path, text):
    return Step("write", text, path)


def replace(path, old, new):
    return Step("replace", old, path, new)


def think(about):
    return Step("think", about)


def unknown(text):
    return Step("unknown", text)


ONE_STEP = {
    "read README.md": read("README.md"),
    "Read README.md.": read("README.md"),
    "please show me the file notes.txt": read("notes.txt"),
    "cat ./a/b": read("./a/b"),
    "OPEN 'my file.txt'": read("my file.txt"),
    "read `a.txt`": read("a.txt"),
    "show the contents of src/x.py": read("src/x.py"),
    "what's in notes.txt?": read("notes.txt"),
    "read Makefile": read("Makefile"),
    "read README.md and tell me what it says": read("README.md"),
    "could you read my notes.txt": read("notes.txt"),
    "list": listing("."),
    "ls": listing("."),
    "ls -la": listing("."),
    "ls src": listing("src"),
    "list src/": listing("src/"),
    "list ..": listing(".."),
    "list files": listing("."),
    "list files in src": listing("src"),
    "list the files in the current directory": listing("."),
    "list the src folder": listing("src"),
    "show files in src": listing("src"),
    "what files are here?": listing("."),
    "search TODO": search("TODO", "."),
    "search needle.": search("needle", "."),
    'search for "foo bar" in src': search("foo bar", "src"),
    "search for foo bar in src": search("foo bar", "src"),
    "search src for TODO": search("TODO", "src"),
    "search in src for TODO": search("TODO", "src"),
    "look for TODO in the project": search("TODO", "."),
    "grep TODO": search("TODO", "."),
    "grep -rn TODO src": search("TODO", "src"),
    "find def main in gong/": search("def main", "gong/"),
    "run ls -la": run("ls -la"),
    "run `wc -l README.md`.": run("wc -l README.md"),
    'run "echo a then b"': run("echo a then b"),
    "execute the command: ls": run("ls"),
    "$ echo hi then bye": run("echo hi then bye"),
    "$ if true; then echo yes; fi": run("if true; then echo yes; fi"),
    "write a.txt with hello world": write("a.txt", "hello world"),
    'write a.txt with "one then two"': write("a.txt", "one then two"),
    'write "hello" to a.txt': write("a.txt", "hello"),
    "write hello to a.txt": write("a.txt", "hello"),
    "create file notes.md containing x": write("notes.md", "x"),
    "create an empty file x.txt": write("x.txt", ""),
    "write out.py with:\n\n```python\nprint(1)\n\nthen()\n```": write(
        "out.py", "print(1)\n\nthen()\n"
    ),
    "write a.txt with\n```\n```": write("a.txt", ""),
    "replace foo with bar in a.txt": replace("a.txt", "foo", "bar"),
    'replace "a b" with \'c d\' in "my file.txt"': replace("my file.txt", "a b", "c d"),
    "in a.txt replace foo with bar": replace("a.txt", "foo", "bar"),
    "change x to y in z.py": replace("z.py", "x", "y"),
    'replace foo with "" in a.txt': replace("a.txt", "foo", ""),
    "think": think(""),
    "think about life": think("life"),
    "think hard about: life": think("life"),
    "hello": unknown("hello"),
    "what is the weather?": unknown("what is the weather?"),
    "show me a joke": unknown("show me a joke"),
    "make test": unknown("make test"),
}


@pytest.mark.parametrize("prompt", ONE_STEP)
def test_a_plain_request_is_one_step(prompt):
    assert parse_request(prompt) == (ONE_STEP[prompt],)


SEVERAL = {
    "": (),
    " \n\t\n": (),
    "then": (),
    "read README.md then run wc -l README.md": (read("README.md"), run("wc -l README.md")),
    "read a, then list src; then read b and then run x": (
        read("a"),
        listing("src"),
        read("b"),
        run("x"),
    ),
    "read a\r\nread b\r\n\r\n$ ls\nlist src": (
        read("a"),
        read("b"),
        run("ls"),
        listing("src"),
    ),
    "1. read a\n2. read b": (read("a"), read("b")),
    "- $ date\n- $ ls": (run("date"), run("ls")),
    "think about life then read README.md": (think("life"), read("README.md")),
    'read "a then b.txt" then list files': (read("a then b.txt"), listing(".")),
    "list files then $ date": (listing("."), run("date")),
    "write a.txt:\n```\none\nthen two\n```\nthen read a.txt": (
        write("a.txt", "one\nthen two\n"),
        read("a.txt"),
    ),
    "I am lost.\nWho are you?\nread a.txt": (
        unknown("I am lost.\nWho are you?"),
        read("a.txt"),
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
