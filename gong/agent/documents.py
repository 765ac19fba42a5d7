"""Files, pictures and outputs that a person gives to the model with words.

They are recorded as `context` entries of the origin `document`, after the words that they came
with, so that a prompt stays what was typed.

A command that the person ran is on the tape as soon as it has ended:

    the model gets it   the agent   entry
    ------------------  ----------  --------------------------------------------------------------
    no                  any         a `note`
    yes                 is idle     a `document`
    yes                 works       `gong.command`; a `document` and `gong.delivered` with the next
                                    words, or when the run ends
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Raw, Struct

from tape.model.entries import Context, Custom, Image, Note, Text
from tape.text import clean_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tape.model.entries import Block
    from tape.model.line import Entry

    from .recorder import Recorder

COMMAND, DELIVERED = "gong.command", "gong.delivered"
"""Kinds of `custom` entries: an output that waits; and that it is in the conversation."""
_MAX_OUTPUT = 30_000
"""Characters of a command's output that are kept."""


class AttachedDocument(NamedTuple):
    """One file, picture or output of a command."""

    text: str
    """What the model reads; of a picture, what it is."""
    picture: bytes = b""
    mime: str = ""
    """The type of the picture, such as image/png."""
    id: str = ""
    """That of the entry on the tape that says it waits; empty for none."""


class _WaitingOutput(Struct, frozen=True):
    """The data of `gong.command`."""

    id: str
    text: str


class _DeliveryMark(Struct, frozen=True):
    id: str
    entry: str | None = None


def record_documents(recorder: Recorder, documents: list[AttachedDocument]) -> None:
    """Record documents, their pictures in blobs, and empty the list."""
    for document in documents:
        blocks: list[Block] = [Text(document.text)]
        if document.picture:
            blob = recorder.tape.blobs.put(document.picture)
            blocks.append(Image(blob=blob, mime=document.mime))
        entry = recorder.append(Context("user", "document", tuple(blocks)))
        if document.id:
            mark = _DeliveryMark(document.id, entry.id)
            recorder.append(Custom(DELIVERED, Raw(msgspec.json.encode(mark))))
    documents.clear()


def record_output(
    recorder: Recorder, command: str, output: str, end: str, *, shared: bool, now: bool
) -> AttachedDocument | None:
    """Record what a command of the person printed; durable on return.

    `end` says how it ended, such as "exit code 0". With `shared` the model gets it: at once, or
    unless `now` as the document that is returned.
    """
    if len(output) > _MAX_OUTPUT:
        output = f"{output[:_MAX_OUTPUT]}\n… {len(output) - _MAX_OUTPUT} more characters"
    texts = [clean_words(text) for text in (command, output.rstrip()) if text]
    transcript = "\n".join(("$ " + texts[0], *texts[1:], f"[{end}]"))
    document = None
    if not shared:
        recorder.append(Note(transcript))
    elif now:
        document = AttachedDocument(f"The user ran this command:\n{transcript}")
        record_documents(recorder, [document])
    else:
        waits = secrets.token_hex(4)
        document = AttachedDocument(f"The user ran this command:\n{transcript}", id=f"o_{waits}")
        record_waiting_outputs(recorder, [document])
    recorder.barrier()
    return None if now else document


def record_waiting_outputs(recorder: Recorder, documents: Sequence[AttachedDocument]) -> None:
    """Record those documents that are outputs, and wait."""
    for document in documents:
        if document.id:
            data = msgspec.json.encode(_WaitingOutput(document.id, document.text))
            recorder.append(Custom(COMMAND, Raw(data)))


def find_waiting_outputs(path: Sequence[Entry]) -> list[AttachedDocument]:
    """Return the outputs on a path that the model has not got, oldest first."""
    waiting: dict[str, AttachedDocument] = {}
    for entry in path:
        if entry.type != Custom.entry_type or not isinstance(entry.data, Custom):
            continue
        with suppress(msgspec.MsgspecError):  # another program's entry under our name
            if entry.data.kind == COMMAND:
                output = msgspec.json.decode(entry.data.data, type=_WaitingOutput)
                waiting[output.id] = AttachedDocument(output.text, id=output.id)
            elif entry.data.kind == DELIVERED:
                waiting.pop(msgspec.json.decode(entry.data.data, type=_DeliveryMark).id, None)
    return [*waiting.values()]
