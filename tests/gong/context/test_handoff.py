"""The page that hands work on: everything known is on it, and nothing that changes by itself."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from gong.context.costs import Spend
from gong.context.handoff import Handoff, build_handoff, render_handoff
from tape.history.activity import summarize_activity
from tape.model.entries import (
    Assistant,
    Cost,
    Start,
    Summary,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    User,
)
from tape.model.line import decode_line, encode_line, encode_payload

LOGIN = Handoff(
    title="Login",
    goal="Let people log in",
    background="Go and PostgreSQL",
    done=("Create the user model (pkg/models/user.go)", "Migrations"),
    todo=("Refresh tokens",),
    key_files=("pkg/auth/oauth.go",),
    decisions=("JWT",),
    notes=("Tokens live 24 hours",),
    requests=("Add OAuth2.\nGitHub first.",),
    spending={
        "anthropic": Spend(9, Usage(total=45_230), 0.23),
        "openai": Spend(4, Usage(total=12_890), 0.11, 1),
    },
    tape="3f2a9c1b" * 4,
    branch="main",
    entry="abcdef01" * 5,
    others=("1" * 32,),
    from_model="anthropic/claude",
    to_model="openai/gpt",
    created="2026-11-22T05:00:00.000000Z",
)

PAGE = """\
# Handoff: Login

2026-11-22 05:00 UTC · from anthropic/claude · to openai/gpt · tape 3f2a9c1b, branch main · entry \
abcdef01

## Goal

Let people log in

## Background

Go and PostgreSQL

## Done

- [x] Create the user model (pkg/models/user.go)
- [x] Migrations

## To do

- [ ] Refresh tokens

## Key files

- pkg/auth/oauth.go

## Decisions

- JWT

## Notes

- Tokens live 24 hours

## The user's own requests, word for word

- Add OAuth2.
  GitHub first.

## Tokens and cost

- anthropic: 45,230 tokens ($0.230)
- openai: 12,890 tokens ($0.110+)
- Total: 58,120 tokens ($0.340+)

## How to continue

    gong chat --session 3f2a9c1b -m openai/gpt

The model gets the conversation itself, fitted to its provider; elsewhere, start with this page. \
In full: `tape cat 3f2a9c1b`, `tape cat 11111111`.
"""


def test_the_page_has_all_there_is_to_know():
    """M168: goal, background, done, to do, key files, notes, tokens and cost for each provider."""
    assert render_handoff(LOGIN) == PAGE


def test_what_is_not_known_is_left_out():
    assert render_handoff(Handoff()) == "# Handoff: work in progress\n"
    assert "## Done" not in render_handoff(Handoff(goal="x"))


TEXTS = st.lists(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1))


@given(TEXTS, TEXTS, TEXTS)
def test_every_item_is_on_the_page_each_time_alike(done, todo, notes):
    """M168"""
    handoff = Handoff(goal="g", done=tuple(done), todo=tuple(todo), notes=tuple(notes))
    lines = render_handoff(handoff).split("\n")
    assert [line[6:] for line in lines if line.startswith("- [x] ")] == done
    assert [line[6:] for line in lines if line.startswith("- [ ] ")] == todo
    assert render_handoff(handoff) == "\n".join(lines)


def entries(*payloads):
    found, parent = [], None
    for n, payload in enumerate(payloads):
        time = f"2026-11-22T05:00:00.{n:06d}Z"
        _, line = encode_line(payload.entry_type, parent, n, time, encode_payload(payload))
        found.append(decode_line(line[:-1]))
        parent = found[-1].id
    return found


def said(text):
    return User((Text(text=text),))


def answered(text, *, cost=None, call=None):
    blocks = (Text(text=text), *([call] if call else ()))
    price = None if cost is None else Cost("USD", cost)
    return Assistant(blocks, provider="a", model="m", usage=Usage(total=10), cost=price)


DONE = summarize_activity(
    entries(
        Start("0" * 32, "0001-main-start", "main", "/src", "test/1"),
        said("write it"),
        answered(
            "",
            cost=0.5,
            call=ToolCall(id="c", name="write", args=Raw(b'{"path":"lib/a.py","content":"x"}')),
        ),
        ToolResult("c", "write", (Text(text="ok"),)),
        answered("It is written."),
        said("now the tests"),
    )
)


def test_a_summary_and_deeds_become_a_handoff():
    """M168"""
    summary = Summary(
        goal="A library",
        constraints=("no network",),
        done=("the parser",),
        in_progress=("the printer",),
        blocked=("no key",),
        decisions=("C99",),
        next_steps=("docs",),
        critical_context=("port 8143",),
        files_changed=("/src/lib/b.py", "lib/a.py"),
        requests=("Write it,\nplease.", "now the tests and\nmore"),
    )
    made = build_handoff(Handoff(tape="7" * 32), summary, DONE, cwd="/src")
    assert made == Handoff(
        goal="A library",
        background="- no network",
        done=("the parser",),
        todo=("the printer", "blocked: no key", "docs"),
        key_files=("lib/b.py", "lib/a.py"),
        decisions=("C99",),
        notes=("port 8143",),
        requests=("Write it,\nplease.", "now the tests and\nmore"),
        tape="7" * 32,
    )


PASTE = "please fix this:\n" + "\n".join(f"  File mod{n}.py, line {n}" for n in range(60))


def test_a_pasted_prompt_is_on_the_page_once():
    """M168: its first line stands for it elsewhere."""
    summary = Summary(
        goal=f"{PASTE[:90]} … {PASTE[-50:]}",
        done=("wrote it",),
        critical_context=("File mod7.py, line 7", "port 8143"),
        requests=(PASTE,),
    )
    for told in (summary, ""):
        made = build_handoff(
            Handoff(requests=(PASTE,)),
            told,
            summarize_activity(entries(said(PASTE), answered("Done."))),
        )
        text = render_handoff(made)
        assert [text.count(f"mod{n}.py") for n in range(60)] == [1] * 60
        assert text.startswith("# Handoff: please fix this: …\n")
        assert made.goal == "please fix this: …"
    assert made.done == ("please fix this: …: Done.",)
    assert build_handoff(Handoff(), summary, DONE).notes == ("port 8143",)


def test_a_file_is_on_the_page_once():
    summary = Summary(goal="g", files_changed=("lib/a.py", "./lib/../lib/a.py", "/src/lib/a.py"))
    assert build_handoff(Handoff(), summary, DONE, cwd="/src").key_files == ("lib/a.py",)


def test_a_file_outside_the_folder_has_its_whole_path():
    """As in a summary, which shortens paths by the same rule."""
    summary = Summary(goal="g", files_changed=("../b.py", "/other/c.py"))
    made = build_handoff(Handoff(), summary, DONE, cwd="/src")
    assert made.key_files == ("/b.py", "/other/c.py", "lib/a.py")


def test_without_a_summary_the_prompts_say_what_is_done():
    """M168"""
    made = build_handoff(Handoff(), "", DONE)
    assert (made.goal, made.done, made.todo) == (
        "write it",
        ("write it: It is written.",),
        ("now the tests",),
    )
    assert made.key_files == ("/src/lib/a.py",)
    assert build_handoff(Handoff(), "All went well.", DONE).notes == ("All went well.",)
