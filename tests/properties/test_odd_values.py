"""A tape of odd values, its hashes all true, and what a store says of the other tapes in it."""

import json
import shutil
import tempfile
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tape.index.library import open_store
from tape.model.line import encode_line, read_header
from tests.tape import making
from tests.tape.cli.conftest import Command
from tests.tape.making import BUDGET

NUMBERS = st.sampled_from(
    [
        *("0", "-1", "1.5", "1e308", "-1e308", "1e3", "1e999", "true", "null", '"12"', "[]", "{}"),
        *(str(2**63 - 1), str(2**63), str(-(2**63)), "1" * 400, "1" * 5_000, "7"),
    ]
)
STRINGS = st.sampled_from(
    [
        *('""', r'"a\u0000b"', r'"\ud800"', r'"\u202e\u0007\u001b[31m"', '"../../x"', '"/"'),
        *('"~"', f'"{"x" * 3_000}"', "null", "5", "[]", '"main"', '"2026"'),
    ]
)
ODD = NUMBERS | STRINGS
TIMES = st.sampled_from(
    [
        "2027-02-31T00:00:00.000000Z",
        "2026-11-22T25:00:00.000000Z",
        "9999-12-31T23:59:59.999999Z",
        "0000-00-00T00:00:00.000000Z",
        "2026-11-22T00:60:60.000000Z",
        "9999-99-99T99:99:99.999999Z",
        "0001-01-01T00:00:00.000000Z",
        "2027-01-01T00:00:00.000000Z",
    ]
)


def objects(**fields):
    """JSON objects that have these members, or some of them."""
    drawn = st.fixed_dictionaries({}, optional=fields)
    return drawn.map(_joined)


def _joined(members):
    return "{" + ",".join(f'"{name}":{value}' for name, value in members.items()) + "}"


def listed(values):
    return st.lists(values, max_size=3).map(lambda found: f"[{','.join(found)}]")


USAGE = objects(input=NUMBERS, output=NUMBERS, reasoning=NUMBERS, cache_read=NUMBERS, total=NUMBERS)
MONEY = objects(currency=STRINGS | st.just('"USD"') | st.just('"EUR"'), amount=NUMBERS)
BLOB = objects(**{"$blob": st.just(f'"{"0" * 64}"') | STRINGS, "bytes": NUMBERS, "head": STRINGS})
BLOCK = objects(
    type=st.sampled_from(['"text"', '"tool_call"', '"image"', '"thinking"']) | STRINGS,
    text=ODD | BLOB,
    id=STRINGS,
    name=st.sampled_from(['"edit"', '"write"', '"apply_patch"']) | STRINGS,
    args=objects(path=STRINGS, content=ODD, old=ODD, new=ODD, edits=ODD) | NUMBERS,
    args_text=STRINGS,
    blob=BLOB,
)
CONTENT = listed(BLOCK) | ODD
DATA = {
    "user": objects(content=CONTENT),
    "assistant": objects(
        content=CONTENT,
        provider=STRINGS,
        model=STRINGS,
        usage=USAGE | ODD,
        cost=MONEY | ODD,
        duration_ms=NUMBERS,
    ),
    "tool.result": objects(
        call_id=STRINGS,
        name=STRINGS,
        content=CONTENT,
        is_error=ODD,
        duration_ms=NUMBERS,
        full=BLOB | ODD,
        files=ODD,
    ),
    "usage": objects(purpose=STRINGS, provider=STRINGS, model=STRINGS, usage=USAGE, cost=MONEY),
    "meta": objects(cwd=ODD, project=ODD, tags=ODD),
    "redact": objects(targets=listed(ODD), why=ODD),
    "repair": objects(kind=ODD, injected=ODD, dropped=ODD, quarantine=ODD),
    "checkpoint": objects(files=ODD),
    "note": objects(text=ODD) | NUMBERS,
}
KINDS = st.sampled_from(sorted(DATA))
ENTRIES = st.lists(
    st.tuples(TIMES, KINDS.flatmap(lambda kind: st.tuples(st.just(kind), DATA[kind]))), max_size=6
)
REFS = st.lists(
    objects(label=STRINGS, entry=ODD, branch=STRINGS, phase=STRINGS, why=ODD)
    | objects(title=ODD, why=st.just('"title"'), time=ODD | TIMES.map(json.dumps)),
    max_size=2,
)
HUGE = [("2030-01-01T00:00:00.000000Z", ("usage", f'{{"usage":{{"input":{2**63 - 1}}}}}'))] * 2
LATE = [("9999-12-31T23:59:59.999999Z", ("note", '{"text":"late"}'))]
NEVER = [("2027-02-31T00:00:00.000000Z", ("note", '{"text":"never"}'))]
RICH = [("2027-01-01T00:00:00.000000Z", ("usage", '{"cost":{"currency":"USD","amount":1e308}}'))]


WROTE = (
    b'{"content":[{"type":"tool_call","id":"c_1_0","name":"write","args":{"path":"/src/a.py",'
    b'"content":"x = 1\\n"}}],"provider":"p","model":"m","usage":{"input":5,"output":2,"total":7},'
    b'"cost":{"currency":"USD","amount":0.5}}'
)


def write(folder, entries, refs, created):
    """Write these entries, moves and a time of making into a tape, byte-correct."""
    file = folder / "phases/0001-main-start/entries.jsonl"
    header = read_header(file.read_bytes()[:-1])
    with file.open("ab") as out:
        for time, (kind, data) in entries:
            header, line = encode_line(kind, header.id, header.n + 1, time, data.encode())
            out.write(line)
    with (folder / "refs.jsonl").open("ab") as out:
        for move in refs:
            rest = move[1:].encode()
            out.write(b'{"h":"%b",%b\n' % (sha256(rest).hexdigest()[:16].encode(), rest))
    if created is not None:
        info = folder / "tape.json"
        told = json.loads(info.read_bytes())
        info.write_text(json.dumps(told | {"created": "CREATED"}).replace('"CREATED"', created))


def made(home):
    """Make a store of two tapes; return the command, the good one's id, and the other's folder."""
    work = home / "work"
    work.mkdir()
    command = Command(home, work)
    store = making.store_in(command.store)
    with store.create(making.beginning("good")) as tape:
        making.write(tape, "needle")
        with tape.writer() as writer:
            writer.append_data("assistant", WROTE)
            writer.append_data("tool.result", b'{"call_id":"c_1_0","name":"write","content":[]}')
        identity = tape.id
    with store.create(making.beginning("odd")) as tape:
        return command, identity, tape.id, making.folder_of(store, tape)


def answered(command, identity):
    """Return what the questions about the whole store say of one tape."""
    listed = [row for row in command("ls", "--all", "--json").json if row["id"] == identity]
    counted = [
        row for row in command("stats", "--by", "tape", "--json").json if row["tape"] == identity
    ]
    hits = [
        {key: value for key, value in hit.items() if key not in ("score", "rank")}
        for hit in command("search", "needle", "--json").json
        if hit["tape"] == identity
    ]
    code = command("verify", "--all", code=None).text
    verified = [line for line in code.splitlines() if line.startswith(f"{identity[:8]}: ")]
    blamed = command("blame", "/src/a.py", "--json", code=None).text
    return listed, counted, hits, verified, blamed


STORE_WIDE = (
    *("ls", "ls --all --sort created", "ls --since 2d", "stats", "stats --by day"),
    *("stats --by model", "stats --by tool", "stats --by branch", "search needle"),
    *("gc --dry-run", "reindex", "ls --all --sort cost"),
)
OF_ONE = (
    *("show", "log", "log --graph", "log --json", "cat", "cat --md", "tail", "branches", "anchors"),
    *("label", "context", "context --json", "replay --check", "stats", "export", "verify", "fsck"),
    *("export --no-redact", "export --to anthropic", "fork --new", "rename odd"),
)


@pytest.mark.slow
@given(ENTRIES, REFS, st.none() | ODD | TIMES.map(json.dumps))
@example(HUGE, [], None)
@example(LATE, [], None)
@example(NEVER, [], '"2027-02-31T00:00:00.000000Z"')
@example(RICH * 2, [], '"yesterday"')
@settings(max_examples=10 * BUDGET, deadline=None)
def test_odd_values_of_one_tape_change_no_answer_about_another(entries, refs, created):
    home = Path(tempfile.mkdtemp())
    try:
        command, good, odd, folder = made(home)
        before = answered(command, good)
        write(folder, entries, refs, created)
        (command.store / "index.db").unlink()
        assert answered(command, good) == before
        for words in STORE_WIDE:
            ran = command(*words.split(), code=None)
            assert ran.code in (0, 1, 4), (words, ran)
            assert "--debug shows" not in ran.err, (words, ran)
        for words in OF_ONE:
            verb, *rest = words.split()
            ran = command(verb, odd[:8], *rest, code=None)
            assert ran.code in range(5), (words, ran)
            assert "--debug shows" not in ran.err, (words, ran)
        line = b'{"type":"note","data":{"text":"on"}}\n'
        ran = command("append", odd[:8], stdin=line, code=None)
        assert ran.code in (0, 4), ran
        assert "--debug shows" not in ran.err, ran
        assert answered(command, good) == before
    finally:
        shutil.rmtree(home)


def test_the_same_tape_is_in_an_index_and_is_read_without_one(tmp_path):
    command, good, _, folder = made(tmp_path)
    write(folder, [*NEVER, *RICH, *HUGE, *LATE], [], None)
    with open_store(command.store) as (_, index):
        index.rows(None, 0)
    indexed = answered(command, good)
    (command.store / "index.db").unlink()
    (command.store / "index.db").mkdir()
    assert answered(command, good) == indexed
