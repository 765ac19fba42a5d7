"""A session of another agent → a tape, and again when it has grown: only what is new is added.

The tape's id is that of the session, so the same session is always the same tape. A step is looked
for below the entry that it follows, by type and content; what is not there is written, on the
branch that ends at that entry, else on a new branch:

    steps            tape before      added
    1─2─3            1─2              3, on the same branch
    1─2─3            1─2─x            3, on a branch from 2 (x was recorded here by somebody else)
    1─2─4, 2─3       1─2─3            4, on a branch from 2
    1─2              1─2              nothing
    1─2ab            1─2a             2ab, in place of 2a: the answer had not ended

So a crash between two entries costs nothing, and a tape that people have continued stays theirs. A
new tape is built under a name that readers ignore, and renamed when it is whole.

A session that was exported from a tape of ours, and continued in the other agent, is a branch of
that tape (`returned`). One that repeats the history of another one is put on the tape of that one
(`family`):
what was said there is found whatever remarks stand between, and the rest begins own branches.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from hashlib import sha256
from pathlib import Path
from struct import Struct as Packing
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ..errors import Busy, TapeError
from ..folders import locate_repository
from ..formats.sessions.steps import COPIED, NEWEST, ROOT, SourceSession
from ..model.entries import (
    Anchor,
    Assistant,
    BlobRef,
    CoveredRange,
    ImportedSession,
    Meta,
    Start,
    ToolCall,
    User,
    join_texts,
)
from ..places.reference import build_session_branch, build_session_label
from ..repository import WorkFacts
from ..store.recorded_tape import record_new_tape
from ..store.refs import choose_branch_name, find_head, make_ref_name
from ..store.store import Store
from .family import ImportedTapes
from .recorded import SAID, EntryPlace, RecordedEntries
from .returned import ExportedEntries, find_exported_tape

if TYPE_CHECKING:
    from ..formats.sessions.steps import SourceStep
    from ..model.entries import Block, Payload
    from ..store.store import Beginning
    from ..store.tape import Tape
    from ..store.writer import Writer

FactFinder = Callable[[str | None], WorkFacts]
"""Returns repository and person of a session in the repository at this top, or in none."""


def find_no_facts(_project: str | None) -> WorkFacts:
    """Return that nothing is known."""
    return WorkFacts()


_MAX_WRITERS = 16
"""Branches that are open at once."""


class ImportedTape(Struct, frozen=True):
    """What the import of one session did."""

    id: str
    path: str
    """The tape's folder."""
    title: str
    added: int
    """Entries added to the store."""
    entries: int
    """Entries that the file gives."""
    damaged: int
    """Lines that could not be read."""
    unknown: int
    """Lines that were kept whole, and not understood."""
    branches: int
    tool: str
    session: str
    """The other agent's id of it."""
    source: str
    """The file."""
    version: int | None = None
    """Version of the file's format, where it has one."""
    unknown_kinds: dict[str, int] = {}
    """Kind of the lines in `unknown` → how many."""
    left_out: dict[str, int] = {}
    """What is not on the tape, as `describe_left_out` knows it → how many."""
    doubles: str | None = None
    """Id of another tape that has the history which this one begins with: it counts twice."""


def import_session(
    store: Store,
    session: SourceSession,
    beginning: Beginning,
    source: str,
    digest: str,
    others: ImportedTapes | None = None,
    find_facts: FactFinder = find_no_facts,
) -> list[ImportedTape]:
    """Record a session and its sub-agents, each on its tape; the session's own is the first.

    `source` is its file, and `digest` the SHA-256 of that; `others` is what is known of the other
    tapes. A session that repeats the history of another one is recorded on the tape of that one.
    What the session does not say of its repository and person, `find_facts` says, where its folder
    is on this machine.
    Raises Busy and WriteFailed; what was added before stays, and the next import continues from
    there.
    """
    others = ImportedTapes(store) if others is None else others
    imported = ImportedSession(
        session.tool, session.format, source, session.id, digest, session.forked_from
    )
    filler = _TapeFiller(session, find_facts)
    first = _find_first_prompt(session)
    project, facts = _find_folder_facts(session.cwd, find_facts)
    begins = beginning._replace(
        cwd=session.cwd or beginning.cwd,
        slug=session.title or first,
        program=f"{beginning.program} (import from {session.tool})",
        git=session.git,
        repository=session.repository or facts.repository,
        project=session.project or project,
        person=session.person or facts.person,
        machine=session.machine,
        imported=imported,
    )
    timed = filler.build_timed_store(store)
    folder = others.folders.find(session.tape_id)
    doubles = None
    if folder is not None:
        doubles = _find_double(store, session, others, folder)
        with timed.open_folder(folder) as tape:
            filler.fill(tape, known=True)
    elif returned := _fill_exported_tape(store, session, others, find_facts):
        folder, filler = returned
    elif guest := _fill_tape_of_relative(store, session, others, find_facts):
        folder, filler = guest
    else:
        folder = record_new_tape(timed, session.tape_id, begins, filler.fill_new)
    with store.open_folder(folder) as tape:
        identity, title, branches = tape.id, tape.title() or "", len(tape.refs().branches)
    done = ImportedTape(
        identity,
        str(store.tapes.absolute() / folder),
        title,
        filler.added,
        filler.seen,
        session.damaged,
        session.unknown.total(),
        branches,
        session.tool,
        session.id,
        source,
        session.version,
        {**session.unknown},
        {kind: count for kind, count in session.left_out.items() if count},
        doubles,
    )
    inner = [
        imported
        for child in session.children
        if child.id not in filler.known_agents
        for imported in import_session(store, child, beginning, source, digest, others, find_facts)
    ]
    return [done, *inner]


def _fill_exported_tape(
    store: Store, session: SourceSession, others: ImportedTapes, find_facts: FactFinder
) -> tuple[str, _TapeFiller] | None:
    """Record a session on the tape that it was exported from; None if it was not, or not here."""
    folder = find_exported_tape(session, others.folders)
    if folder is None:
        return None
    filler = _TapeFiller(session, find_facts, is_guest=True)
    with filler.build_timed_store(store).open_folder(folder) as tape:
        filler.begin(tape)
        if not filler.find_exported_steps():
            return None
        filler.fill(tape, known=True)
    return folder, filler


def _fill_tape_of_relative(
    store: Store, session: SourceSession, others: ImportedTapes, find_facts: FactFinder
) -> tuple[str, _TapeFiller] | None:
    """Record a session on the tape that has its beginning; None if there is no such tape."""
    for relative in others.find_relatives(session):
        filler = _TapeFiller(session, find_facts, is_guest=True)
        with filler.build_timed_store(store).open_folder(relative.folder) as tape:
            filler.begin(tape)
            is_same = filler.find_copies(needs_response_id=not relative.is_named)
            if is_same or relative.is_home:
                filler.fill(tape, known=not is_same or relative.is_home)
                others.forget(relative.folder)
                return relative.folder, filler
    return None


def _find_double(
    store: Store, session: SourceSession, others: ImportedTapes, own: str
) -> str | None:
    """Return the id of a tape that has the beginning of a session which has a tape of its own.

    Imports of earlier versions made such tapes.
    """
    for relative in others.find_doubles(session, own):
        filler = _TapeFiller(session, is_guest=True)
        with store.open_folder(relative.folder) as tape:
            filler.begin(tape)
            if filler.find_copies(needs_response_id=not relative.is_named):
                return tape.id
    return None


def _find_folder_facts(folder: str | None, find_facts: FactFinder) -> tuple[str | None, WorkFacts]:
    """Return the top of a folder's repository, and its facts; nothing where it is not here."""
    if folder is None or not folder.startswith("/") or not Path(folder).is_dir():
        return None, WorkFacts()
    project = locate_repository(folder)
    return project, find_facts(project)


def _name_blob(data: bytes) -> BlobRef:
    """Return what names some bytes, and store nothing."""
    return BlobRef(sha256(data).hexdigest(), len(data))


def _find_first_prompt(session: SourceSession) -> str:
    """Return the first words of the user, for the name of the tape's folder."""
    for step in session.read_steps(_name_blob):
        for payload in step.payloads:
            if isinstance(payload, User) and (text := join_texts(payload.content).strip()):
                return text
    return ""


_PACKED = Packing("<QQI")


class _Spots:
    """Step → entry, as few bytes as can be: a file of 1 GB has hundreds of thousands."""

    def __init__(self) -> None:
        self._packed: dict[str, bytes] = {}
        self._phases: dict[str, int] = {}
        self._names: list[str] = []

    def __setitem__(self, step: str, spot: EntryPlace) -> None:
        number = self._phases.setdefault(spot.phase, len(self._names))
        if number == len(self._names):
            self._names.append(spot.phase)
        self._packed[step] = _PACKED.pack(spot.n, spot.offset, number) + bytes.fromhex(spot.id)

    def __getitem__(self, step: str) -> EntryPlace:
        packed = self._packed[step]
        n, offset, number = _PACKED.unpack_from(packed)
        return EntryPlace(packed[_PACKED.size :].hex(), n, self._names[number], offset)

    def __contains__(self, step: str) -> bool:
        return step in self._packed

    def get(self, step: str, default: EntryPlace) -> EntryPlace:
        """Return the entry of a step, or `default` where it has none."""
        return self[step] if step in self._packed else default


def _has_beginning(whole: Assistant, part: Assistant) -> bool:
    """Return whether an answer is another one as it was before its end; ids of calls differ.

    Where the other one says that it has not ended, its last words may be cut off.
    """
    ours = [(type(block), *_list_words(block)) for block in whole.content]
    theirs = [(type(block), *_list_words(block)) for block in part.content]
    if part.partial and theirs and len(ours) >= len(theirs):
        cut, end = theirs.pop(), ours[len(theirs)]
        if cut[0] is not end[0] or not str(end[1] or "").startswith(str(cut[1] or "")):
            return False
    return ours[: len(theirs)] == theirs and whole.response_id == part.response_id


def _list_words(block: Block) -> tuple[object, ...]:
    if isinstance(block, ToolCall):
        return block.name, bytes(block.args), block.args_text
    return (getattr(block, "text", None), getattr(block, "blob", None))


class _TapeFiller:
    """Adds the steps of a session to its tape."""

    def __init__(
        self,
        session: SourceSession,
        find_facts: FactFinder = find_no_facts,
        *,
        is_guest: bool = False,
    ) -> None:
        self.session, self.find_facts = session, find_facts
        self.label = build_session_label(session.tool, session.id)
        self.branches = build_session_branch(session.tool, session.id)
        """How the branches of a session on the tape of another one are called."""
        self.is_guest = is_guest
        """The tape is that of another session, which has the beginning of this one."""
        self.is_returned = False
        """The session was exported from the tape."""
        self.known_agents: set[str] = set()
        """Ids of sub-agents whose sessions are in the store already."""
        self.copied: dict[int, EntryPlace] = {}
        """Place of a step → its newest entry, where the step or what follows it is on the tape."""
        self.time = session.created or 0
        """Time of the entry that is written, in microseconds since 1970."""
        self.added = 0
        self.seen = 1
        """Entries that the session has, its start included."""
        self.starts = _Spots()
        """Step → the first of its entries, where that is not the last one."""
        self.ends = _Spots()
        """Step → the last one, with the remarks that belong to it."""
        self.ends[ROOT] = EntryPlace("", 0, "", 0)
        self.newest = ROOT
        self.heads: dict[str, str] = {}
        """Newest entry of a branch → the branch."""
        self.ends_of_branches: dict[str, str] = {}
        """Branch → its newest entry, when the tape was read."""
        self.open_answers: dict[str, tuple[str, EntryPlace]] = {}
        """Entry before the newest of a branch, where that is an answer → the branch, and that."""
        self.writers: dict[str, Writer] = {}

    def read_time(self) -> int:
        """Return the time of the entry that is written: a clock."""
        return self.time

    def build_timed_store(self, store: Store) -> Store:
        """Return the store with the times of the session as its clock."""
        return Store(
            store.path,
            clock=self.read_time,
            random=store.random,
            durable=store.durable,
            projection=store.projection,
            anonymous=True,  # two copies that import one session write the same entries
        )

    def fill_new(self, tape: Tape, writer: Writer) -> None:
        """Record all steps on a new tape, whose first branch is open."""
        self.added = 1
        self.writers[writer.branch] = writer
        self.fill(tape, known=False)
        self.writers.clear()

    def fill(self, tape: Tape, *, known: bool) -> None:
        """Add the steps that are not there."""
        if not self.is_guest:
            self.begin(tape)
        root = self.ends[ROOT]
        before = self.added
        self.session.begin_reading()
        own = set(self.writers)
        try:
            for place, step in enumerate(self.session.read_steps(tape.blobs.put)):
                if place in self.copied:
                    self._note_step(step, self.copied[place])
                else:
                    self._add_step(step, root)
            for writer in self.writers.values():
                writer.barrier()
        finally:
            with ExitStack() as closing:
                for branch, writer in self.writers.items():
                    if branch not in own:
                        closing.callback(writer.close)
        if self.is_guest:
            if self.added > before or self.heads or not self.is_returned:
                self._move_label()
        elif self.added > before or not known or self._is_at_earlier_step():
            self._move_names()

    def begin(self, tape: Tape) -> None:
        """Take note of what the tape has already."""
        self.tape = tape
        self.recorded = RecordedEntries(tape, self.session.strip_changes)
        self.recorded.read()
        self.ends[ROOT] = self.recorded.start
        self._read_branches()
        others = f"{self.session.tool}-"
        if self.is_guest:
            self.heads = {
                entry: branch
                for branch, entry in self.ends_of_branches.items()
                if branch.startswith(f"{self.branches}-")
            }
            self.open_answers.clear()
        elif any(branch.startswith(others) for branch in tape.refs().branches):
            self.find_copies()

    def find_copies(self, *, needs_response_id: bool = False) -> bool:
        """Find the steps that are on the tape, where remarks before them may differ.

        Returns whether there are any, and an answer with the provider's id if that is needed.
        """
        is_same = False
        spots: list[EntryPlace | None] = []
        above: list[int] = []
        times: set[int] = set()
        newest, ends = ROOT, {ROOT: -1}
        root = self.ends[ROOT]
        for place, step in enumerate(self.session.read_steps(_name_blob)):
            before = ends.get(newest if step.parent == NEWEST else step.parent, -1)
            spot = root if before < 0 else spots[before]
            for payload in step.payloads:
                if payload.entry_type in SAID and spot is not None:
                    spot = self.recorded.take_said(spot, payload)
                    if spot is not None:
                        times.add(place)
                        is_same |= not needs_response_id or bool(
                            isinstance(payload, Assistant) and payload.response_id
                        )
            above.append(before)
            spots.append(spot)
            newest = newest if step.id is None else step.id
            ends[newest] = place
        for place in reversed(range(len(spots))):
            spot = spots[place]
            if place in times and spot is not None:
                self.copied[place] = spot
                times.add(above[place])
        return is_same

    def find_exported_steps(self) -> bool:
        """Find the steps that came from this tape, and return whether there are any.

        Remarks came from it, too, unless they stand between it and something new.
        """
        exported = ExportedEntries(self.tape)
        exported.read()
        self.is_returned = True
        self.known_agents = {f"{self.session.id}/{agent}" for agent in exported.agents}
        spots: list[list[str] | None] = []
        above: list[int] = []
        spoken_places: set[int] = set()
        newest, ends = ROOT, {ROOT: -1}
        for place, step in enumerate(self.session.read_steps(_name_blob)):
            before = ends.get(newest if step.parent == NEWEST else step.parent, -1)
            spot = [exported.root] if before < 0 else spots[before]
            named = exported.find_named(step.id) if step.id else None
            payloads = [payload for payload in step.payloads if payload.entry_type in SAID]
            if named is not None:
                spot = [named]
            for payload in () if named else payloads:
                spot = exported.find_same(spot, payload) if spot else None
            if payloads or named:
                spoken_places.add(place)
            above.append(before)
            spots.append(spot)
            newest = newest if step.id is None else step.id
            ends[newest] = place
        before_ours, before_new = set[int](), set[int]()
        for place in reversed(range(len(spots))):
            spot, is_said = spots[place], place in spoken_places
            if (spot and is_said) or place in before_ours:
                before_ours.add(above[place])
            if not spot or place in before_new:
                before_new.add(above[place])
            if spot and (is_said or place in before_ours or place not in before_new):
                self.copied[place] = exported.places.get(spot[-1], self.recorded.start)
        return not spoken_places.isdisjoint(self.copied)

    def _note_step(self, step: SourceStep, spot: EntryPlace) -> None:
        """Take note of a step that is on the tape."""
        self.seen += len(step.payloads)
        if self.is_guest and not self._is_on_own_branch(spot):
            self.session.left_out[COPIED] += len(step.payloads)
        self.newest = self.newest if step.id is None else step.id
        self.ends[self.newest] = spot

    def _is_on_own_branch(self, spot: EntryPlace) -> bool:
        """Return whether an entry was added for this session, on the tape of another one."""
        return f"-{self.branches}-" in spot.phase

    def _read_branches(self) -> None:
        """Take note of where the branches of the tape end."""
        refs = self.tape.refs()
        for branch in refs.branches:
            head = find_head(refs, self.tape.phases, branch)
            self.heads.setdefault(head.entry, branch)
            self.ends_of_branches[branch] = head.entry
            if head.header.type == Assistant.entry_type:
                spot = EntryPlace(head.entry, head.header.n, head.phase, head.offset)
                before = head.header.parent_id or ""
                self.open_answers[self.recorded.branch_starts.get(before, before)] = branch, spot

    def _add_step(self, step: SourceStep, root: EntryPlace) -> None:
        """Find or write the entries of a step."""
        self.time = step.time or self.time
        parent = self.newest if step.parent == NEWEST else step.parent
        spot = self.ends.get(parent, root)
        first: EntryPlace | None = None
        self.seen += len(step.payloads)
        if self.is_guest and not self._is_on_own_branch(spot):
            spot = self._note_folder(spot, root)
        for payload in step.payloads:
            if isinstance(payload, Anchor):
                spot = self._add_anchor(payload, step, spot, root)
            else:
                spot = self.recorded.take(spot, payload.entry_type, payload) or self._write(
                    spot, payload
                )
            first = first or spot
        if step.id is None:
            if self.newest not in self.starts:
                self.starts[self.newest] = self.ends[self.newest]
            self.ends[self.newest] = spot
            return
        self.ends[step.id] = spot
        if first is not None and first != spot:
            self.starts[step.id] = first
        self.newest = step.id

    def _note_folder(self, spot: EntryPlace, root: EntryPlace) -> EntryPlace:
        """Find or write the folder of a session where it leaves the path of another one."""
        start = self.tape.entry(self.recorded.read_head(root)).data
        if not isinstance(start, Start) or self.session.cwd in {None, start.cwd}:
            return spot
        note = Meta(cwd=self.session.cwd)
        return self.recorded.take(spot, Meta.entry_type, note) or self._write(spot, note)

    def _add_anchor(
        self, anchor: Anchor, step: SourceStep, spot: EntryPlace, root: EntryPlace
    ) -> EntryPlace:
        """Find or write an anchor: it covers the path so far, and keeps it from a step on."""
        place = self.recorded.take(spot, Anchor.entry_type, None)
        if place is not None:
            return place
        writer = self._open_at(spot)
        writer.barrier()
        head = self.recorded.read_head(spot)
        kept_from = step.kept_from or ""
        count = 0
        if kept_from and kept_from in self.ends:
            count = spot.n - self.starts.get(kept_from, self.ends[kept_from]).n + 1
        covered = self.tape.find_ancestor(head, count).head if 0 < count < spot.n else head
        covers = CoveredRange(root.id, covered.entry, covered.header.n - root.n + 1)
        anchored = replace(anchor, kept=self.tape.newest(head, count), covers=covers)
        entry = writer.anchor(anchored)
        return self._advance(writer, spot, entry.n)

    def _write(self, spot: EntryPlace, payload: Payload) -> EntryPlace:
        if isinstance(payload, Meta) and payload.cwd is not None:
            project, facts = _find_folder_facts(payload.cwd, self.find_facts)
            payload = replace(payload, project=project, repository=facts.repository)
        writer = self._reopen_answer(spot, payload) or self._open_at(spot)
        return self._advance(writer, spot, writer.append(payload).n)

    def _reopen_answer(self, spot: EntryPlace, payload: Payload) -> Writer | None:
        """Return the writer of a branch that ends with the beginning of this answer, before it."""
        if not isinstance(payload, Assistant) or spot.id not in self.open_answers:
            return None
        branch, end = self.open_answers.pop(spot.id)
        before = self.tape.entry(self.recorded.read_head(end)).data
        if self.heads.get(end.id) != branch or not isinstance(before, Assistant):
            return None
        if not _has_beginning(payload, before):
            return None
        try:
            writer = self.writers.get(branch) or self._keep_writer(self.tape.writer(branch))
        except Busy:
            return None
        writer.rewind(self.recorded.read_head(spot))
        del self.heads[end.id]
        return writer

    def _advance(self, writer: Writer, before: EntryPlace, n: int) -> EntryPlace:
        self.added += 1
        place = writer.place
        self.heads.pop(before.id, None)
        self.heads[place.entry] = writer.branch
        return EntryPlace(place.entry, n, place.phase, place.offset)

    def _open_at(self, spot: EntryPlace) -> Writer:
        """Return the writer of a branch that ends at an entry; begin a branch where none does."""
        branch = self.heads.get(spot.id)
        if branch is not None:
            if branch in self.writers:
                return self.writers[branch]
            try:
                return self._keep_writer(self.tape.writer(branch))
            except Busy:  # a session that runs is writing it
                del self.heads[spot.id]
        for writer in self.writers.values():
            writer.barrier()
        return self._keep_writer(self.tape.writer(self._fork_own_branch(spot)))

    def _keep_writer(self, writer: Writer) -> Writer:
        if len(self.writers) >= _MAX_WRITERS:
            oldest = [*self.writers][1]  # the first may be the caller's
            self.writers.pop(oldest).close()
        self.writers[writer.branch] = writer
        return writer

    def _find_end(self) -> EntryPlace:
        """Return the entry at which the session is."""
        end = self.ends[self.newest]
        return end if self.session.newest is None else self.ends.get(self.session.newest, end)

    def _is_at_earlier_step(self) -> bool:
        """Return whether the session is at an earlier step, where no branch ends yet."""
        return self.session.newest is not None and self._find_end().id not in self.heads

    def _move_label(self) -> None:
        """Label the newest entry of a session on the tape of another one, on a branch of its own.

        Where people have continued that branch, the label and the branch stay as they are.
        """
        refs, end = self.tape.refs(), self._find_end()
        has_branch = any(branch.startswith(f"{self.branches}-") for branch in refs.branches)
        if has_branch and refs.labels.get(self.label) == end.id:
            return
        if end.id not in self.heads:
            self._fork_own_branch(end)
        self.tape.label(self.label, end.id)

    def _fork_own_branch(self, spot: EntryPlace) -> str:
        name = choose_branch_name(self.tape.refs(), self.branches) if self.is_guest else None
        return self.tape.fork(self.recorded.read_head(spot), name, why="import")

    def _move_names(self) -> None:
        """Make the branch of the newest step the current one, and give the tape its title."""
        refs, end = self.tape.refs(), self._find_end()
        branch = self.heads.get(end.id)
        if branch is None:  # the session went back to an earlier step
            branch = self._fork_own_branch(end)
        if branch != refs.current:
            self.tape.switch(branch)
        if self.session.title and self.session.title != refs.title:
            self.tape.rename(self.session.title)
        for label, step in self.session.labels.items():
            name = make_ref_name(label)
            if step in self.ends and refs.labels.get(name) is None:
                with suppress(TapeError):  # the entry itself keeps the label as it was
                    self.tape.label(name, self.ends[step].id)
