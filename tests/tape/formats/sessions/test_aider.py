"""Chats of aider: the prose of one file, chat by chat."""

from __future__ import annotations

import pytest

from tape.errors import TapeError
from tape.model.entries import Assistant, Note, User
from tape.sessions.sources import (
    find_sessions_in,
    is_session_file,
    list_sessions_in,
    open_session_file,
)
from tape.store.store import Store
from tests.tape.formats.sessions.lines import list_payloads, store_session

TEXT = """
# aider chat started at 2026-05-01 10:00:00

> aider --model gpt-4o
> Main model: gpt-4o with diff edit format

#### add a function
#### that counts words

Here it is:

```python
# no heading
def count(): ...
```

> Tokens: 2.1k sent, 310 received. Cost: $0.01 message.
> Applied edit to a.py

# aider chat started at 2026-05-02 11:00:00

#### hello
Hi.
"""


@pytest.fixture
def file(tmp_path):
    made = tmp_path / "app/.aider.chat.history.md"
    made.parent.mkdir()
    made.write_text(TEXT)
    return made


def test_each_chat_is_a_session(file):
    assert is_session_file(file)
    sources = [*list_sessions_in(file)]
    assert [one.row for one in sources] == ["2026-05-01 10:00:00", "2026-05-02 11:00:00"]
    assert find_sessions_in(file.parent) == sources
    session, _ = open_session_file(sources[0])
    first, user, answer, note = list_payloads(session)
    assert (type(first), type(user), type(answer), type(note)) == (Note, User, Assistant, Note)
    assert user.content[0].text == "add a function\nthat counts words"
    assert answer.content[0].text.endswith("def count(): ...\n```")
    assert "# no heading" in answer.content[0].text
    assert (answer.provider, answer.model) == ("aider", "gpt-4o")
    assert (answer.usage.input, answer.usage.output) == (2100, 310)
    assert session.cwd == str(file.parent)
    other, _ = open_session_file(sources[1])
    assert [type(one) for one in list_payloads(other)] == [User, Assistant]
    assert other.id != session.id


def test_marks_in_a_fenced_block_are_words_of_the_answer(file):
    """The lines are those that aider 0.86 writes; its own marks end with two blanks."""
    said = "##### Plan\n\n```md\n> quoted\n#### not a prompt\n```"
    heading = "\n# aider chat started at 2026-05-03 10:00:00\n\n> Model: gpt-5  \n\n"
    prompt = "#### fix  \n####     return 1  \n\n"
    cut = "\n\n#### more  \n\n```py\nx\n\n#### go on  \n\nYes.\n"
    file.write_text(heading + prompt + said + cut)
    (source,) = list_sessions_in(file)
    note, *talk = list_payloads(open_session_file(source)[0])
    assert isinstance(note, Note)
    words = ["fix\n    return 1", said, "more", "```py\nx", "go on", "Yes."]
    assert [one.content[0].text for one in talk] == words
    assert [type(one) for one in talk] == [User, Assistant] * 3


def test_a_chat_that_grew_continues(file, tmp_path):
    store = Store(tmp_path / "store")
    *_, last = list_sessions_in(file)
    first = store_session(store, open_session_file(last)[0])
    file.write_text(TEXT + "\n#### more\n\nYes.\n")
    grown = store_session(store, open_session_file(last)[0])
    assert (grown.id, grown.added, grown.branches) == (first.id, 2, 1)


def test_a_file_without_a_chat_holds_no_session(tmp_path):
    file = tmp_path / ".aider.chat.history.md"
    file.write_bytes(b"\xff\xfe nothing")
    assert [*list_sessions_in(file)] == []
    with pytest.raises(TapeError):
        open_session_file(next(list_sessions_in(tmp_path / "none.jsonl")))
