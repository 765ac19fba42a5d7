"""A finding explained for people: what it is, what was lost and what was not, what to do; pure."""

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
    """Ids of the tapes whose history includes it."""


class _Words(NamedTuple):
    what: str
    lost: str
    todo: str


_MEND = "`tape fsck {tape} --repair` does it"
_ON = "continue from before it: {on}"
WORDS = {
    Kind.LINK: _Words(
        "Something in the tape is a symbolic link. Links are never followed.",
        "The target is not part of the tape as long as it is a link.",
        "replace the link by the file itself",
    ),
    Kind.UNREADABLE: _Words(
        "The system refuses to read it.",
        "Its content is unknown.",
        "check its permissions and the disk, or restore it from a copy",
    ),
    Kind.INFO: _Words(
        "tape.json and the start entry contradict each other.",
        "Nothing of the history; the start entry is protected by its hash and is correct.",
        "write tape.json again from the start entry: " + _MEND,
    ),
    Kind.INFO_UNREADABLE: _Words(
        "tape.json cannot be read, so this tape cannot be opened.",
        "Nothing: the start entry, protected by its hash, has all of its content.",
        "write tape.json again from the start entry: " + _MEND,
    ),
    Kind.JOURNAL: _Words(
        "The journal is missing or cannot be read, so no branch is known.",
        "Pins, titles and labels. Entries are intact, and each phase gives its own line again.",
        "write it again from the phases: " + _MEND,
    ),
    Kind.JOURNAL_LINE: _Words(
        "A line of the journal changed on the disk after it was written. Writers refuse until it "
        "is repaired; readers skip it.",
        "The content of this line: {text}. Entries are intact, and a line that named a phase is "
        "rebuilt from its first entry; a pin, a title or a label has to be set again.",
        "replace the journal by its good lines: " + _MEND,
    ),
    Kind.CURRENT: _Words(
        "The journal names a current branch that does not exist.",
        "Nothing of the history, but perhaps the line that made the branch.",
        "make another one current: " + _MEND,
    ),
    Kind.HEAD: _Words(
        "The entry where the journal says this branch is, or was, does not exist.",
        "The branch name as a way to that entry; existing entries keep their ids.",
        "restore the file from a copy, or " + _ON,
    ),
    Kind.LABEL: _Words(
        "A label names an entry that is not in this tape.",
        "The entry, if it ever existed; nothing else depends on a label.",
        "give the label to another entry",
    ),
    Kind.LINE: _Words(
        "The bytes of this line changed after it was written.",
        "This entry cannot be trusted. All other lines are intact, including those after it.",
        "it stays as it is; restore the file from a copy, or " + _ON,
    ),
    Kind.DATA: _Words(
        "The hashes of this line match, but its data violates the format.",
        "The content of this entry, if it had any. All other lines are intact.",
        "ask the author of the program that wrote it, or " + _ON,
    ),
    Kind.TIME: _Words(
        "The time of this entry is not a valid date, or so late that none is left for the next "
        "entry. It does not come from a clock.",
        "The time of writing. Everything else is intact and can be read.",
        "nothing: it stays as it is; readers use the next valid time, and later entries follow "
        "that",
    ),
    Kind.PLACE: _Words(
        "The line is genuine, but not in its place: lines or folders were moved, removed or made "
        "by hand.",
        "The lines between, if there were any. The line itself is intact.",
        "move the files back, or " + _ON,
    ),
    Kind.BASE: _Words(
        "The entry that this phase continues from is not where it was.",
        "The path is broken here: earlier entries cannot be reached through this phase. "
        "The entries of the phase itself are intact.",
        "restore the lost entry from a copy of the tape, or from its quarantine, or " + _ON,
    ),
    Kind.EMPTY: _Words(
        "The journal names this phase, but its file does not begin with a complete entry.",
        "The entries of this phase. Those of all other phases are intact.",
        "restore the file from a copy, or " + _ON,
    ),
    Kind.OVERWRITTEN: _Words(
        "The data of this entry was overwritten, but no redact entry names it.",
        "The data of this entry. Its id, its time and its place are intact.",
        "restore the file from a copy, or " + _ON,
    ),
    Kind.REDACTION: _Words(
        "A redaction was interrupted. Readers treat the entries it names as redacted where their "
        "data is incomplete.",
        "Only data that was to be redacted.",
        "overwrite the rest: " + _MEND + ", and so does another `tape redact`",
    ),
    Kind.BLOB: _Words(
        "A large text, picture or file changed on the disk after it was written.",
        "The original content of this blob. The entries that name it are intact.",
        "move it to quarantine, so that it is not mistaken for the original: " + _MEND,
    ),
    Kind.BLOB_NAMED: _Words(
        "The entry is intact, but the large text, picture or file it names is not.",
        "That content, except the beginning of a text, which is in the entry. "
        "Readers show a placeholder.",
        "restore the file from a copy, under blobs/; nothing else needs repair",
    ),
    Kind.UNNAMED: _Words(
        "A phase in use is not in the journal, so readers do not see it.",
        "Nothing: its entries are intact, only the line that names them is missing.",
        "write its line again: " + _MEND,
    ),
    Kind.UNCOMMITTED: _Words(
        "A program ended after it created this phase and before it named it in the journal.",
        "Nothing that was acknowledged; readers ignore it.",
        "nothing",
    ),
    Kind.LEFTOVER: _Words(
        "A program ended while it was creating this.",
        "Nothing that was acknowledged; readers ignore it.",
        "move it to the store's trash: " + _MEND + ", and `tape gc` deletes it",
    ),
    Kind.WRITING: _Words("Another process is writing this line now.", "Nothing.", "nothing"),
    Kind.TORN: _Words(
        "A program ended, or the disk failed, while the last line was being written.",
        "At most that one line, which was never acknowledged unless the file was truncated. "
        "All lines before it are intact.",
        "move the bytes to quarantine; the next append does so too, and " + _MEND,
    ),
    Kind.UNRECORDED: _Words(
        "A torn tail (incomplete last line) was moved here, and the program ended before it "
        "recorded that in an entry.",
        "Nothing: the bytes are in this file.",
        "{record}",
    ),
}
_END = _Words(
    "The bytes of this line changed after it was written, and no good line follows it.",
    "This entry cannot be trusted. All lines before it are intact.",
    "move it to quarantine; the next append does so too, and " + _MEND,
)


def explanation(finding: Finding, facts: Facts) -> Explanation:
    """Return the explanation of a finding, with the tapes that depend on it."""
    said = _words(finding, facts)
    phase = phase_of(finding)
    tape = facts.info.id[:_SHORT]
    words = {
        "tape": tape,
        "on": _way_on(finding, facts),
        "text": _text(finding, facts),
        "record": f"record it now: {_MEND.format(tape=tape)}"
        if record(finding, facts)
        else "nothing",
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
    """Return the text of a journal line, as far as it is UTF-8."""
    if finding.file != REFS or finding.offset is None or facts.journal is None:
        return ""
    line = facts.journal[finding.offset :].partition(b"\n")[0]
    return line.decode(errors="replace")


def _way_on(finding: Finding, facts: Facts) -> str:
    """Return the command that forks at the last good entry before a finding."""
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
    """Return a REF to the last readable entry of a branch before its newest move; None if none."""
    for ago, move in enumerate(reversed(facts.refs.branches.get(branch, ()))):
        if ago and move.phase in facts.phases:
            return f":{branch}@{{{ago}}}"
    return None
