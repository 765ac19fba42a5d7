"""What the offline model can be asked to do, one step each."""

from __future__ import annotations

from msgspec import Struct


class ReadStep(Struct, frozen=True, tag="read"):
    """Read a file."""

    path: str


class ListStep(Struct, frozen=True, tag="list"):
    """List a folder."""

    path: str


class SearchStep(Struct, frozen=True, tag="search"):
    """Search a folder's files for a pattern."""

    pattern: str
    path: str


class RunStep(Struct, frozen=True, tag="run"):
    """Run a shell command."""

    command: str


class WriteStep(Struct, frozen=True, tag="write"):
    """Write a whole file."""

    path: str
    content: str


class ReplaceStep(Struct, frozen=True, tag="replace"):
    """Replace a text in a file."""

    path: str
    old: str
    new: str


class ThinkStep(Struct, frozen=True, tag="think"):
    """Think aloud; `about` may be empty."""

    about: str


class RememberStep(Struct, frozen=True, tag="remember"):
    """Note a fact for later: it stands in the conversation, nothing else has to be done."""

    fact: str


class RecallStep(Struct, frozen=True, tag="recall"):
    """Answer a question from what was said before: `memory.py` makes it of a puzzle.

    `answer` is None where it was not found; `words` are to be looked for then.
    """

    question: str
    words: str
    answer: str | None


class SummarizedStep(Struct, frozen=True, tag="summarised"):
    """Nothing: what was asked stands in a summary, and no call says how far it had come."""


class PuzzleStep(Struct, frozen=True, tag="puzzle"):
    """Words that were not understood."""

    text: str


Step = (
    ReadStep
    | ListStep
    | SearchStep
    | RunStep
    | WriteStep
    | ReplaceStep
    | ThinkStep
    | RememberStep
    | RecallStep
    | SummarizedStep
    | PuzzleStep
)
