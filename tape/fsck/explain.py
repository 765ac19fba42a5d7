"""A finding in words for people: what it is, what was lost and what was not, what to do; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from ..refs import REFS
from ..verify import Kind
from .facts import phase_of
from .plan import record

if TYPE_CHECKING:
    from ..verify import Finding
    from .facts import Facts

_SHORT = 8
_ID = 12


class Explanation(Struct, frozen=True, gc=False):
    """What a finding means."""

    what: str
    lost: str
    """What was lost, and what was not."""
    todo: str
    tapes: tuple[str, ...]
    """Ids of the tapes whose past leads over it."""


class _Words(NamedTuple):
    what: str
    lost: str
    todo: str


_MEND = "`tape fsck {tape} --repair` does it"
_ON = "go on from before it: {on}"
WORDS = {
    Kind.LINK: _Words(
        "Something in the tape is a link to another place. Links are never followed.",
        "What the link stands for is not part of the tape as long as it is a link.",
        "put the file itself in its place",
    ),
    Kind.UNREADABLE: _Words(
        "The system does not let it be read.",
        "Nothing can be told of what stands in it.",
        "look at its rights and at the disk, or bring it back from a copy",
    ),
    Kind.INFO: _Words(
        "tape.json and the start entry do not say the same of this tape.",
        "Nothing of the history; the start entry, vouched for by its hash, is the one to believe.",
        "write tape.json again from the start entry: " + _MEND,
    ),
    Kind.INFO_UNREADABLE: _Words(
        "tape.json cannot be read, so this tape cannot be opened.",
        "Nothing: the start entry, vouched for by its hash, holds all that stood in it.",
        "write tape.json again from the start entry: " + _MEND,
    ),
    Kind.JOURNAL: _Words(
        "The journal is not there or cannot be read, so no branch is known.",
        "Pins, titles and labels. Entries are whole, and each phase tells its own line.",
        "write it again from the phases: " + _MEND,
    ),
    Kind.JOURNAL_LINE: _Words(
        "A line of the journal changed on the disk after it was written. Writers refuse until it "
        "is mended; readers leave it out.",
        "What this line said: {text}. Entries are whole, and lines that named a phase are told "
        "again by its first entry; a pin, a title or a label has to be set again.",
        "put a journal of its good lines in its place: " + _MEND,
    ),
    Kind.CURRENT: _Words(
        "The journal calls a branch current that it does not know.",
        "Nothing of the history, but perhaps the line that made the branch.",
        "make another one current: " + _MEND,
    ),
    Kind.HEAD: _Words(
        "The place where the journal says this branch stands, or stood, is not there.",
        "The way to that place by the branch's name; entries that are there keep their ids.",
        "bring the file back from a copy, or " + _ON,
    ),
    Kind.LABEL: _Words(
        "A label names an entry that this tape does not hold.",
        "The entry, if it ever was here; nothing else depends on a label.",
        "give the label to another entry",
    ),
    Kind.LINE: _Words(
        "The bytes of this line are not those that were written.",
        "This entry cannot be trusted. All other lines are whole, also those behind it.",
        "it stays as it is; bring the file back from a copy, or " + _ON,
    ),
    Kind.DATA: _Words(
        "The hashes of this line hold, and no program that keeps to the format writes such data.",
        "What this entry was to say, if anything. All other lines are whole.",
        "ask whoever wrote it, or " + _ON,
    ),
    Kind.TIME: _Words(
        "The time that stands here is no moment of the calendar, or so late that none is left for "
        "what follows. No clock gave it.",
        "When this was written. All else stands as it was written, and can be read.",
        "it stays as it is: readers take the next moment there is, and what is appended comes "
        "after that",
    ),
    Kind.PLACE: _Words(
        "The line is one that was written, but not in this place: lines or folders were moved, "
        "left out or made by hand.",
        "What stood between, if anything did. The line itself is whole.",
        "put files back as they were, or " + _ON,
    ),
    Kind.BASE: _Words(
        "The entry this phase goes on from cannot be found where it was.",
        "The path is broken here: what stands before cannot be reached through this phase. "
        "The entries of the phase itself are whole.",
        "bring the lost entry back from a copy of the tape, or from its quarantine, or " + _ON,
    ),
    Kind.EMPTY: _Words(
        "The journal names this phase, and its file does not begin with a whole entry.",
        "The entries of this phase. Those of all other phases are whole.",
        "bring the file back from a copy, or " + _ON,
    ),
    Kind.OVERWRITTEN: _Words(
        "The data of this entry was overwritten, and nothing says that it was meant to be.",
        "The data of this entry. Its id, its time and its place are whole.",
        "bring the file back from a copy, or " + _ON,
    ),
    Kind.REDACTION: _Words(
        "A redaction ended before it was through. Readers treat the entries it names as redacted "
        "where their data is not whole.",
        "Nothing but what was meant to go.",
        "overwrite what is left: " + _MEND + ", and so does another `tape redact`",
    ),
    Kind.BLOB: _Words(
        "A long text, picture or file changed on the disk after it was written.",
        "The content of this blob as it was. The entries that name it are whole.",
        "move it to quarantine, so that nobody takes it for the original: " + _MEND,
    ),
    Kind.BLOB_NAMED: _Words(
        "The entry is whole, but the long text, picture or file it names is not.",
        "That content, but for the beginning of a text, which stands in the entry. "
        "Readers show a placeholder.",
        "bring the file back from a copy, under blobs/; nothing else needs mending",
    ),
    Kind.UNNAMED: _Words(
        "A phase that was in use is not in the journal, so readers do not see it.",
        "Nothing: its entries are whole, only the line that names them is missing.",
        "write its line again: " + _MEND,
    ),
    Kind.UNCOMMITTED: _Words(
        "A program ended between making this phase and naming it in the journal.",
        "Nothing that was acknowledged; readers pass over it.",
        "nothing",
    ),
    Kind.LEFTOVER: _Words(
        "A program ended while it was making this.",
        "Nothing that was acknowledged; readers pass over it.",
        "move it to the store's trash: " + _MEND + ", and `tape gc` deletes it",
    ),
    Kind.WRITING: _Words("Another process is writing this line now.", "Nothing.", "nothing"),
    Kind.TORN: _Words(
        "A program ended, or the disk refused, in the middle of writing the last line.",
        "At most that one line, which was never acknowledged unless somebody cut the file. "
        "All lines before it are whole.",
        "move the bytes to quarantine; the next append does so too, and " + _MEND,
    ),
    Kind.UNRECORDED: _Words(
        "A torn tail was moved here, and the program ended before it could say so in an entry.",
        "Nothing: the bytes stand in this file.",
        "{record}",
    ),
}
_END = _Words(
    "The bytes of this line are not those that were written, and no good line is behind it.",
    "This entry cannot be trusted. All lines before it are whole.",
    "move it to quarantine; the next append does so too, and " + _MEND,
)


def explanation(finding: Finding, facts: Facts) -> Explanation:
    """Return what a finding means, and what depends on it."""
    said = _words(finding, facts)
    phase = phase_of(finding)
    tape = facts.info.id[:_SHORT]
    words = {
        "tape": tape,
        "on": _way_on(finding, facts),
        "text": _text(finding, facts),
        "record": f"say so now: {_MEND.format(tape=tape)}" if record(finding, facts) else "nothing",
    }
    tapes = facts.tapes_over(phase, finding.offset) if phase else ()
    return Explanation(said.what, said.lost.format_map(words), said.todo.format_map(words), tapes)


def _words(finding: Finding, facts: Facts) -> _Words:
    if finding.kind is Kind.LINE and _is_end(finding, facts):
        return _END
    return WORDS[finding.kind]


def _is_end(finding: Finding, facts: Facts) -> bool:
    phase = facts.phases.get(phase_of(finding))
    return phase is not None and (finding.offset or 0) >= phase.tail.end


def _text(finding: Finding, facts: Facts) -> str:
    """Return a line of the journal as far as it can be read."""
    if finding.file != REFS or finding.offset is None or facts.journal is None:
        return ""
    line = facts.journal[finding.offset :].partition(b"\n")[0]
    return line.decode(errors="replace")


def _way_on(finding: Finding, facts: Facts) -> str:
    """Return the command that goes on from the last good place before a finding."""
    place = _last_good(finding, facts)
    if place is None:
        return "there is no good entry before it"
    return f"`tape fork {facts.info.id[:_SHORT]}{place} --switch`"


def _last_good(finding: Finding, facts: Facts) -> str | None:
    phase = facts.phases.get(phase_of(finding))
    if phase_of(finding) in facts.good:
        return f"@{facts.good[phase_of(finding)][:_ID]}"
    if phase is not None and phase.base is not None and phase.base.phase in facts.phases:
        return f"@{facts.phases[phase.base.phase].last[:_ID]}"
    return next((place for name in finding.depends if (place := _earlier(name, facts))), None)


def _earlier(branch: str, facts: Facts) -> str | None:
    """Return where a branch stood last at an entry that can be read, before its newest move."""
    for ago, move in enumerate(reversed(facts.refs.branches.get(branch, ()))):
        if ago and move.phase in facts.phases:
            return f":{branch}@{{{ago}}}"
    return None
