"""Files and pictures that a person gives to the model with words.

They are recorded as `context` entries of the origin `document`, after the words that they came
with, so that a prompt stays what was typed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tape.model.entries import Context, Image, Text

if TYPE_CHECKING:
    from tape.model.entries import Block

    from .recorder import Recorder


class AttachedDocument(NamedTuple):
    """One file, picture or output of a command."""

    text: str
    """What the model reads; of a picture, what it is."""
    picture: bytes = b""
    mime: str = ""
    """The type of the picture, such as image/png."""


def record_documents(recorder: Recorder, documents: list[AttachedDocument]) -> None:
    """Record documents, their pictures in blobs, and empty the list."""
    for document in documents:
        blocks: list[Block] = [Text(document.text)]
        if document.picture:
            blob = recorder.tape.blobs.put(document.picture)
            blocks.append(Image(blob=blob, mime=document.mime))
        recorder.append(Context("user", "document", tuple(blocks)))
    documents.clear()
