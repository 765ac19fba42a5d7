"""The repair actions, one frozen Struct each, and the sentence that describes each one."""

from __future__ import annotations

from typing import assert_never

from msgspec import Struct

from ..phase import ENTRIES
from ..refs import JOURNAL_NAME

_ACTION_ID_DIGITS = 12


class WriteInfo(Struct, frozen=True, tag="tape.json", gc=False):
    """Write tape.json again from the start entry."""


class WriteJournal(Struct, frozen=True, tag="journal", gc=False):
    """Replace the journal by one with its good lines, and new lines for these phases."""

    phases: tuple[str, ...]


class CutJournal(Struct, frozen=True, tag="journal-tail", gc=False):
    """Move the bytes after the journal's last good line to quarantine."""

    end: int
    size: int


class NamePhase(Struct, frozen=True, tag="name-phase", gc=False):
    """Write the journal line of a phase again, from its first entry."""

    phase: str
    branch: str


class SetCurrent(Struct, frozen=True, tag="current", gc=False):
    """Make an existing branch the current one."""

    branch: str


class CutTail(Struct, frozen=True, tag="tail", gc=False):
    """Move the bytes after a phase's last good line to quarantine."""

    phase: str
    branch: str
    end: int
    size: int


class RecordTail(Struct, frozen=True, tag="record", gc=False):
    """Append the missing repair entry for a tail in quarantine."""

    phase: str
    branch: str
    kept: str
    """Name in quarantine."""


class QuarantineBlob(Struct, frozen=True, tag="blob", gc=False):
    """Move a blob whose bytes do not match its name to quarantine."""

    file: str


class CompleteRedaction(Struct, frozen=True, tag="redaction", gc=False):
    """Complete an interrupted redaction; this cannot be undone."""

    entries: tuple[str, ...]
    """Ids of the entries it still has to overwrite."""


class DiscardLeftover(Struct, frozen=True, tag="leftover", gc=False):
    """Move a leftover of an interrupted write to the trash."""

    path: str
    """Path inside the store."""


StructureAction = WriteInfo | WriteJournal | CutJournal | NamePhase | SetCurrent
"""Actions on tape.json and on the journal."""
RepairAction = (
    StructureAction | CutTail | RecordTail | QuarantineBlob | CompleteRedaction | DiscardLeftover
)


def describe_action(action: RepairAction) -> str:
    """Return a sentence that says what an action will do."""
    match action:
        case CutTail(phase, _, end, size):
            return (
                f"move the last {size - end} bytes of phases/{phase}/{ENTRIES} "
                f"to quarantine/{phase}.{end}, and record this in a repair entry"
            )
        case RecordTail(_, branch, kept):
            return f"append a repair entry to {branch} that describes quarantine/{kept}"
        case QuarantineBlob(file):
            return f"move {file} to quarantine; readers then show a placeholder"
        case CompleteRedaction(entries):
            ids = ", ".join(entry[:_ACTION_ID_DIGITS] for entry in entries)
            of = f"overwrite the data of {ids}" if entries else "complete a redaction"
            return f"{of}, as a redact entry says: this cannot be undone"
        case DiscardLeftover(path):
            return f"move {path} to the store's trash"
        case _:
            return _describe_structure_action(action)


def _describe_structure_action(action: StructureAction) -> str:
    match action:
        case WriteInfo():
            return "copy tape.json to quarantine and write it again from the start entry"
        case WriteJournal(phases):
            new = f", and one for each of {', '.join(phases)}" if phases else ""
            return (
                f"copy {JOURNAL_NAME} to quarantine and replace it by one with its good lines{new}"
            )
        case CutJournal(end, size):
            return f"move the last {size - end} bytes of {JOURNAL_NAME} to quarantine/refs.{end}"
        case NamePhase(phase, branch):
            return f"write the line of {phase} into {JOURNAL_NAME} again, which makes it {branch}'s newest"
        case SetCurrent(branch):
            return f"make {branch} the current branch"
        case _:
            assert_never(action)
