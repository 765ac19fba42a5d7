"""What a finding means for people: what was lost and what was not, and what to do; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from ..store.refs import JOURNAL_NAME
from .finding import FindingKind
from .inspection import get_finding_phase
from .repair_plan import plan_record

if TYPE_CHECKING:
    from .finding import Finding
    from .inspection import Inspection

_TAPE_DIGITS = 8
_ENTRY_DIGITS = 12


class Explanation(Struct, frozen=True, gc=False):
    """What a finding means."""

    what: str
    lost: str
    """What was lost, and what was not."""
    todo: str
    tapes: tuple[str, ...]
    """Ids of the tapes whose history includes it."""


class _FindingText(NamedTuple):
    """Each may name {tape}, {on}, {text} and {record}: see `explain_finding`."""

    what: str
    lost: str
    todo: str


_REPAIR_COMMAND = "`tape fsck {tape} --repair` does it"
_FORK_ADVICE = "continue from before it: {on}"
FINDING_TEXTS = {
    FindingKind.LINK: _FindingText(
        "Something in the tape is a symbolic link. Links are never followed.",
        "The target is not part of the tape as long as it is a link.",
        "replace the link by the file itself",
    ),
    FindingKind.UNREADABLE: _FindingText(
        "The system refuses to read it.",
        "Its content is unknown.",
        "check its permissions and the disk, or restore it from a copy",
    ),
    FindingKind.ARCHIVE: _FindingText(
        "A part of the file of the archived tape changed on the disk after it was written.",
        "What stands in that part, which other parts do not depend on: they can still be read.",
        "restore the file from a copy; `tar --zstd -xf` gets out what stands before the damage",
    ),
    FindingKind.INFO: _FindingText(
        "tape.json and the start entry contradict each other.",
        "Nothing of the history; the start entry is protected by its hash and is correct.",
        "write tape.json again from the start entry: " + _REPAIR_COMMAND,
    ),
    FindingKind.INFO_UNREADABLE: _FindingText(
        "tape.json cannot be read, so this tape cannot be opened.",
        "Nothing: the start entry, protected by its hash, has all of its content.",
        "write tape.json again from the start entry: " + _REPAIR_COMMAND,
    ),
    FindingKind.JOURNAL: _FindingText(
        "The journal is missing or cannot be read, so no branch is known.",
        "Pins, titles and labels. Entries are intact, and each phase gives its own line again.",
        "write it again from the phases: " + _REPAIR_COMMAND,
    ),
    FindingKind.JOURNAL_LINE: _FindingText(
        "A line of the journal changed on the disk after it was written. Writers refuse until it "
        "is repaired; readers skip it.",
        "The content of this line: {text}. Entries are intact, and a line that named a phase is "
        "rebuilt from its first entry; a pin, a title or a label has to be set again.",
        "replace the journal by its good lines: " + _REPAIR_COMMAND,
    ),
    FindingKind.CURRENT: _FindingText(
        "The journal names a current branch that does not exist.",
        "Nothing of the history, but perhaps the line that made the branch.",
        "make another one current: " + _REPAIR_COMMAND,
    ),
    FindingKind.HEAD: _FindingText(
        "The entry where the journal says this branch is, or was, does not exist.",
        "The branch name as a way to that entry; existing entries keep their ids.",
        "restore the file from a copy, or " + _FORK_ADVICE,
    ),
    FindingKind.LABEL: _FindingText(
        "A label names an entry that is not in this tape.",
        "The entry, if it ever existed; nothing else depends on a label.",
        "give the label to another entry",
    ),
    FindingKind.LINE: _FindingText(
        "The bytes of this line changed after it was written.",
        "This entry cannot be trusted. All other lines are intact, including those after it.",
        "it is not changed; restore the file from a copy, or " + _FORK_ADVICE,
    ),
    FindingKind.DATA: _FindingText(
        "The hashes of this line match, but its data violates the format.",
        "The content of this entry, if it had any. All other lines are intact.",
        "ask the author of the program that wrote it, or " + _FORK_ADVICE,
    ),
    FindingKind.TIME: _FindingText(
        "The time of this entry is not a valid date, or so late that none is left for the next "
        "entry. It does not come from a clock.",
        "The time of writing. Everything else is intact and can be read.",
        "nothing: it is not changed; readers use the next valid time, and later entries follow "
        "that",
    ),
    FindingKind.PLACE: _FindingText(
        "The line is genuine, but not in its place: lines or folders were moved, removed or made "
        "written by another program.",
        "The lines between, if there were any. The line itself is intact.",
        "move the files back, or " + _FORK_ADVICE,
    ),
    FindingKind.BASE: _FindingText(
        "The entry that this phase continues from is not where it was.",
        "The path is broken here: earlier entries cannot be reached through this phase. "
        "The entries of the phase itself are intact.",
        "restore the lost entry from a copy of the tape, or from its quarantine, or "
        + _FORK_ADVICE,
    ),
    FindingKind.EMPTY: _FindingText(
        "The journal names this phase, but its file does not begin with a complete entry.",
        "The entries of this phase. Those of all other phases are intact.",
        "restore the file from a copy, or " + _FORK_ADVICE,
    ),
    FindingKind.OVERWRITTEN: _FindingText(
        "The data of this entry was overwritten, but no redact entry names it.",
        "The data of this entry. Its id, its time and its place are intact.",
        "restore the file from a copy, or " + _FORK_ADVICE,
    ),
    FindingKind.REDACTION: _FindingText(
        "A redaction was interrupted. Readers treat the entries it names as redacted where their "
        "data is incomplete.",
        "Only data that was to be redacted.",
        "overwrite the rest: " + _REPAIR_COMMAND + ", and so does another `tape redact`",
    ),
    FindingKind.BLOB: _FindingText(
        "A large text, picture or file changed on the disk after it was written.",
        "The original content of this blob. The entries that name it are intact.",
        "move it to quarantine, so that it is not mistaken for the original: " + _REPAIR_COMMAND,
    ),
    FindingKind.BLOB_NAMED: _FindingText(
        "The entry is intact, but the large text, picture or file it names is not.",
        "That content, except the beginning of a text, which is in the entry. "
        "Readers show a placeholder.",
        "restore the file from a copy, under blobs/; nothing else needs repair",
    ),
    FindingKind.UNNAMED: _FindingText(
        "A phase in use is not in the journal, so readers do not see it.",
        "Nothing: its entries are intact, only the line that names them is missing.",
        "write its line again: " + _REPAIR_COMMAND,
    ),
    FindingKind.UNCOMMITTED: _FindingText(
        "A program ended after it created this phase and before it named it in the journal.",
        "Nothing that was acknowledged; readers ignore it.",
        "nothing",
    ),
    FindingKind.LEFTOVER: _FindingText(
        "A program ended while it was creating this.",
        "Nothing that was acknowledged; readers ignore it.",
        "move it to the store's trash: " + _REPAIR_COMMAND + ", and `tape gc` deletes it",
    ),
    FindingKind.WRITING: _FindingText(
        "Another process is writing this line now.", "Nothing.", "nothing"
    ),
    FindingKind.TORN: _FindingText(
        "A program ended, or the disk failed, while the last line was being written.",
        "At most that one line, which was never acknowledged unless the file was truncated. "
        "All lines before it are intact.",
        "move the bytes to quarantine; the next append does so too, and " + _REPAIR_COMMAND,
    ),
    FindingKind.UNRECORDED: _FindingText(
        "A torn tail (incomplete last line) was moved here, and the program ended before it "
        "recorded that in an entry.",
        "Nothing: the bytes are in this file.",
        "{record}",
    ),
}
_LAST_LINE_TEXT = _FindingText(
    "The bytes of this line changed after it was written, and no good line follows it.",
    "This entry cannot be trusted. All lines before it are intact.",
    "move it to quarantine; the next append does so too, and " + _REPAIR_COMMAND,
)


def explain_finding(finding: Finding, facts: Inspection) -> Explanation:
    """Return the explanation of a finding, with the tapes that depend on it."""
    name = get_finding_phase(finding)
    phase, tape = facts.phases.get(name), facts.info.id[:_TAPE_DIGITS]
    text = FINDING_TEXTS[finding.kind]
    if finding.kind is FindingKind.LINE and phase and (finding.offset or 0) >= phase.tail.end:
        text = _LAST_LINE_TEXT
    place = _find_last_good_place(finding, facts)
    journal_line = b""
    if finding.file == JOURNAL_NAME and finding.offset is not None and facts.journal is not None:
        journal_line = facts.journal[finding.offset :].partition(b"\n")[0]
    words = {
        "tape": tape,
        "on": f"`tape fork {tape}{place} --switch`"
        if place
        else "there is no good entry before it",
        "text": journal_line.decode(errors="replace"),
        "record": f"record it now: {_REPAIR_COMMAND.format(tape=tape)}"
        if plan_record(finding, facts)
        else "nothing",
    }
    tapes = facts.list_tapes_over(name, finding.offset) if name else ()
    return Explanation(text.what, text.lost.format_map(words), text.todo.format_map(words), tapes)


def _find_last_good_place(finding: Finding, facts: Inspection) -> str | None:
    """Return a REF, without its tape, to the last good entry before a finding; None if none."""
    name = get_finding_phase(finding)
    phase = facts.phases.get(name)
    if name in facts.good:
        return f"@{facts.good[name][:_ENTRY_DIGITS]}"
    if phase is not None and phase.base is not None and phase.base.phase in facts.phases:
        return f"@{facts.phases[phase.base.phase].last[:_ENTRY_DIGITS]}"
    for branch in finding.depends:  # where the branch was before its newest move
        moves = facts.refs.branches.get(branch, ())
        for ago, move in enumerate(reversed(moves)):
            if ago and move.phase in facts.phases:
                return f":{branch}@{{{ago}}}"
    return None
