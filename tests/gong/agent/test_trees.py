"""A session as a tree on the disk: brought from pi, continued, forked, compacted, loaded again."""

from __future__ import annotations

import json

import pytest

import gong
from gong.agent.compaction import CompactionRequest
from tape.check.finding import Counts
from tape.check.verify import verify
from tape.model.entries import join_texts
from tape.store.store import Store
from tests.tape.sessions.test_import_pi import import_pi_session

PI_LINES = [
    {"type": "message", "message": {"role": "user", "content": "first"}},
    {"type": "message", "message": {"role": "hookMessage", "content": "noted"}},
    {
        "type": "message",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
    },
    {"type": "message", "message": {"role": "user", "content": "second"}},
]


def write_pi_session(file, version):
    """Write a session as a version of pi does: from 2 on with ids, from 3 on with roles of now."""
    lines = [{"type": "session", "id": "s", "cwd": "/src", "timestamp": "2025-01-01T00:00:00Z"}]
    for number, row in enumerate(PI_LINES):
        tree = {"id": f"{number}", "parentId": f"{number - 1}" if number else None}
        role = row["message"]["role"]
        new = {"role": "custom", "customType": "note"} if role == "hookMessage" else {}
        message = row["message"] | (new if version > 2 else {})
        time = {"timestamp": f"2025-01-01T00:00:0{number}Z"}
        lines.append({**row, **time, "message": message} | (tree if version > 1 else {}))
    if version > 1:
        lines[0]["version"] = version
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def check_tree(tape):
    """Check that every branch goes back to one root, entry by entry, and that nothing is wrong."""
    assert [*verify(tape, Counts())] == []
    roots = set()
    for branch in tape.refs().branches:
        path = tape.entries(tape.head(branch))
        assert [one.parent_id for one in path[1:]] == [one.id for one in path[:-1]]
        assert path[0].parent_id is None
        roots.add(path[0].id)
    assert len(roots) == 1


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_a_session_of_pi_stays_a_tree_through_every_operation(tmp_path, version):
    """M217: brought from version 1, 2 or 3, continued, forked, compacted and loaded again."""
    write_pi_session(tmp_path / "old.jsonl", version)
    store = Store(tmp_path / "tapes")
    done = import_pi_session(store, (tmp_path / "old.jsonl").read_bytes())
    how = {
        "model": "offline/rules",
        "store": tmp_path / "tapes",
        "environ": {"HOME": str(tmp_path)},
    }
    async with gong.open_session(tmp_path, ref=done.id, **how) as session:
        texts = [join_texts(one.content) for one in session.list_messages()]
        assert texts == ["first", "noted", "a", "second"]
        await gong.answer_prompt(session, "run echo left")
        branch = session.recorder.branch
        session.fork("other")
        await gong.answer_prompt(session, "run echo right")
        async for _ in session.compact(CompactionRequest("user", hard=True)):
            pass
        await gong.answer_prompt(session, "run echo after")
        check_tree(session.recorder.tape)
        shown = [join_texts(one.content) for one in session.list_messages()]
    async with gong.open_session(tmp_path, ref=f"{done.id}:other", **how) as session:
        assert [join_texts(one.content) for one in session.list_messages()] == shown
    async with gong.open_session(tmp_path, ref=f"{done.id}:{branch}", **how) as session:
        assert "`echo left` printed: left" in join_texts(session.list_messages()[-1].content)
        check_tree(session.recorder.tape)
