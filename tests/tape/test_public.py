"""What `import tape` promises; a name that goes or comes changes this list."""

from __future__ import annotations

import tape

PROMISED = """
Ambiguous Anchor Assistant Beginning Block Busy Content Context Damaged Entry Follower Gained
Head Hit Index InvalidEntry InvalidName KeyValues Library Message Moved NewerFormat NotFound Note
OlderFormat Overtaken Payload Repaired Store Summary Tape TapeError TapeRow Target Text
Thinking ToolCall ToolResult ToolStart Usage UsageError User View WriteFailed Writer open_store
""".split()  # noqa: SIM905 (a list of words reads best)


def test_the_public_names_are_the_promised_ones():
    assert tape.__all__ == PROMISED


def test_every_public_name_is_there():
    assert [name for name in PROMISED if not hasattr(tape, name)] == []


def test_another_name_is_not():
    assert not hasattr(tape, "secret")
