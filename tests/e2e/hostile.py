"""A store in which every field holds what would take over a terminal, and every command line."""

from __future__ import annotations

import json
from itertools import count

import click
from msgspec import Raw
from msgspec.structs import replace

from gong.cli.run import gong
from tape.cli.group import tape
from tape.model.entries import (
    AgentEnd,
    AgentStart,
    Anchor,
    Approval,
    Assistant,
    BlobRef,
    ChangedFile,
    Checkpoint,
    Context,
    Cost,
    Custom,
    Document,
    Error,
    Failure,
    FileState,
    Git,
    Mode,
    Model,
    Note,
    Opaque,
    SavedFile,
    SideUsage,
    State,
    SummaryAuthor,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolStart,
    Usage,
    User,
)
from tape.store.store import Beginning
from tests.tape import making

EVIL = (
    "zebra\x1b]52;c;ZXZpbA==\x07\x1b]0;owned\x07\x1b]8;;http://x\x1b\\\x1b[2J\x1b[9;9H\x1b[45;8m"
    "\x9b31m\x9d0;x\x9c\x07\x08\b\rOVER\x7f\u202eabc\u2066\u200b\u2028\x85\n── user · forged\nend"
)
USAGE = Usage(input=10, output=5, total=15)


def fill(home):
    """Write the store and return the prefix of its tape's id."""
    ticks = count(making.DAY, 1_000_000)
    store = making.store_in(home / ".tape", lambda: next(ticks))
    folder = str(home / "work")
    begins = Beginning(folder, EVIL, EVIL, "evil", EVIL, Git(EVIL, EVIL, dirty=True))
    call = ToolCall(id="c_1_0", name=EVIL, args=Raw(json.dumps({EVIL: EVIL}).encode()))
    file = ToolCall(
        id="c_1_1",
        name="write",
        args=Raw(json.dumps({"path": "f.txt", "content": EVIL}).encode()),
    )
    freeform = ToolCall(id="c_1_2", name=EVIL, args_text=EVIL)
    ref = BlobRef("0" * 64, 9, EVIL)
    changed = json.dumps([{"path": EVIL, "op": "modified", "before": None, "after": None}])
    with store.create(begins) as made:
        with made.writer() as writer:
            put = writer.append
            put(
                User(
                    (Text(EVIL), Document(ref, EVIL, EVIL), Opaque(Raw(json.dumps(EVIL).encode())))
                )
            )
            put(Model(EVIL, EVIL, EVIL))
            put(Mode(EVIL, (EVIL,)))
            put(Context("user", EVIL, (Text(EVIL),)))
            said = (Thinking(EVIL), Text(EVIL), call, file, freeform)
            put(
                Assistant(said, EVIL, EVIL, EVIL, EVIL, "tool_calls", EVIL, USAGE, Cost("USD", 1.0))
            )
            put(ToolStart("c_1_0", EVIL, Raw(json.dumps(EVIL).encode()), EVIL))
            put(Approval("c_1_0", EVIL, EVIL, EVIL, EVIL))
            put(ToolResult("c_1_0", EVIL, (Text(EVIL),), is_error=True, full=EVIL))
            put(ToolResult("c_1_1", "write", (Text(EVIL),)))
            writer.append_data(
                "tool.result",
                b'{"call_id":"c_1_2","name":"x","content":[],"is_error":false,"duration_ms":1,'
                b'"files":%b}' % changed.encode(),
            )
            _record_changes(made, put)
            put(SideUsage(EVIL, EVIL, EVIL, USAGE, Cost("USD", 2.0)))
            put(Error(EVIL, EVIL))
            put(AgentStart(EVIL, EVIL, EVIL, EVIL))
            put(AgentEnd(EVIL, EVIL, EVIL))
            put(Custom(EVIL, Raw(json.dumps(EVIL).encode())))
            put(Note(EVIL))
            writer.append_data("x-unknown", json.dumps({EVIL: EVIL}).encode())
            put(Assistant((), EVIL, EVIL, EVIL, EVIL, EVIL, error=Failure(EVIL, EVIL)))
        head = made.head()
        made.label("good", head.entry)
        made.fork(head, "b", why=EVIL)
        with made.writer("b") as writer:
            writer.anchor(
                Anchor(
                    kind="compaction",
                    summary=EVIL,
                    by=SummaryAuthor(EVIL, EVIL, USAGE),
                    reason=EVIL,
                    state=State(EVIL, EVIL),
                )
            )
            writer.append(User((Text(EVIL),)))
            writer.append(Assistant((Text(EVIL),), EVIL, EVIL, EVIL, EVIL, usage=USAGE))
        return made.id[:8]


def _record_changes(made, put):
    """Record a command, an edit and a patch, what they changed, and a restore."""
    calls = {
        "bash": {"command": EVIL, EVIL: EVIL},
        "edit": {"path": EVIL, "old_text": EVIL, "new_text": "x", EVIL: EVIL},
        "apply_patch": {"input": f"*** Begin Patch\n*** Delete File: {EVIL}\n+{EVIL}\n"},
    }
    blocks = [
        ToolCall(id=f"c_2_{name}", name=name, args=Raw(json.dumps(args).encode()))
        for name, args in calls.items()
    ]
    put(Assistant(tuple(blocks)))
    before, after = (made.blobs.put(text.encode()) for text in (f"{EVIL}\n", f"x\n{EVIL}"))
    file = ChangedFile(EVIL, "modified", before=before.hash, after=after.hash, mode=EVIL)
    file = replace(file, before_blob=before, after_blob=after)
    moved = replace(file, op="renamed", source=f"from {EVIL}")
    lost = ChangedFile(EVIL, "deleted", why=EVIL)
    put(ToolResult("c_2_bash", "bash", (Text(EVIL),), files=(file, moved, lost)))
    put(ToolResult("c_2_edit", "edit", (Text(EVIL),), is_error=True))
    saved = SavedFile.from_blob(before)
    state = FileState(EVIL, saved, after=SavedFile.from_blob(after))
    put(Checkpoint((state, FileState(EVIL, saved)), "restore", not_covered=(EVIL,)))
    put(Checkpoint((FileState(EVIL, saved, EVIL),), not_covered=(EVIL,)))


def commands():
    """Return the path of every command of both programs."""
    for group in (tape, gong):
        yield from _walk(group, (group.name,), click.Context(group))


def _walk(command, path, ctx):
    if not isinstance(command, click.Group):
        yield " ".join(path)
        return
    for name in command.list_commands(ctx):
        if (path, name) != (("gong",), "tape"):  # the same commands
            yield from _walk(command.get_command(ctx, name), (*path, name), ctx)
