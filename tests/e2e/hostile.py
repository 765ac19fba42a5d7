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


def fill(home, evil=EVIL):
    """Write the store with a text in every field; return the prefix of its tape's id."""
    ticks = count(making.DAY, 1_000_000)
    store = making.store_in(home / ".tape", lambda: next(ticks))
    folder = str(home / "work")
    begins = Beginning(folder, evil, evil, "evil", evil, Git(evil, evil, dirty=True))
    call = ToolCall(id="c_1_0", name=evil, args=Raw(json.dumps({evil: evil}).encode()))
    file = ToolCall(
        id="c_1_1",
        name="write",
        args=Raw(json.dumps({"path": "f.txt", "content": evil}).encode()),
    )
    freeform = ToolCall(id="c_1_2", name=evil, args_text=evil)
    ref = BlobRef("0" * 64, 9, evil)
    changed = json.dumps([{"path": evil, "op": "modified", "before": None, "after": None}])
    with store.create(begins) as made:
        with made.writer() as writer:
            put = writer.append
            put(
                User(
                    (Text(evil), Document(ref, evil, evil), Opaque(Raw(json.dumps(evil).encode())))
                )
            )
            put(Model(evil, evil, evil))
            put(Mode(evil, (evil,)))
            put(Context("user", evil, (Text(evil),)))
            said = (Thinking(evil), Text(evil), call, file, freeform)
            put(
                Assistant(said, evil, evil, evil, evil, "tool_calls", evil, USAGE, Cost("USD", 1.0))
            )
            put(ToolStart("c_1_0", evil, Raw(json.dumps(evil).encode()), evil))
            put(Approval("c_1_0", evil, evil, evil, evil))
            put(ToolResult("c_1_0", evil, (Text(evil),), is_error=True, full=evil))
            put(ToolResult("c_1_1", "write", (Text(evil),)))
            writer.append_data(
                "tool.result",
                b'{"call_id":"c_1_2","name":"x","content":[],"is_error":false,"duration_ms":1,'
                b'"files":%b}' % changed.encode(),
            )
            _record_changes(made, put, evil)
            put(SideUsage(evil, evil, evil, USAGE, Cost("USD", 2.0)))
            put(Error(evil, evil))
            put(AgentStart(evil, evil, evil, evil))
            put(AgentEnd(evil, evil, evil))
            put(Custom(evil, Raw(json.dumps(evil).encode())))
            put(Note(evil))
            writer.append_data("x-unknown", json.dumps({evil: evil}).encode())
            put(Assistant((), evil, evil, evil, evil, evil, error=Failure(evil, evil)))
        head = made.head()
        made.label("good", head.entry)
        made.fork(head, "b", why=evil)
        with made.writer("b") as writer:
            writer.anchor(
                Anchor(
                    kind="compaction",
                    summary=evil,
                    by=SummaryAuthor(evil, evil, USAGE),
                    reason=evil,
                    state=State(evil, evil),
                )
            )
            writer.append(User((Text(evil),)))
            writer.append(Assistant((Text(evil),), evil, evil, evil, evil, usage=USAGE))
        return made.id[:8]


def _record_changes(made, put, evil):
    """Record a command, an edit and a patch, what they changed, and a restore."""
    calls = {
        "bash": {"command": evil, evil: evil},
        "edit": {"path": evil, "old_text": evil, "new_text": "x", evil: evil},
        "apply_patch": {"input": f"*** Begin Patch\n*** Delete File: {evil}\n+{evil}\n"},
    }
    blocks = [
        ToolCall(id=f"c_2_{name}", name=name, args=Raw(json.dumps(args).encode()))
        for name, args in calls.items()
    ]
    put(Assistant(tuple(blocks)))
    before, after = (made.blobs.put(text.encode()) for text in (f"{evil}\n", f"x\n{evil}"))
    file = ChangedFile(evil, "modified", before=before.hash, after=after.hash, mode=evil)
    file = replace(file, before_blob=before, after_blob=after)
    moved = replace(file, op="renamed", source=f"from {evil}")
    lost = ChangedFile(evil, "deleted", why=evil)
    put(ToolResult("c_2_bash", "bash", (Text(evil),), files=(file, moved, lost)))
    put(ToolResult("c_2_edit", "edit", (Text(evil),), is_error=True))
    saved = SavedFile.from_blob(before)
    state = FileState(evil, saved, after=SavedFile.from_blob(after))
    put(Checkpoint((state, FileState(evil, saved)), "restore", not_covered=(evil,)))
    put(Checkpoint((FileState(evil, saved, evil),), not_covered=(evil,)))


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
