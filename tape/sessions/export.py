"""A tape → a file of another agent, which that agent lists, reads and resumes.

Which agents, and how many branches a file of theirs holds, is in `SESSION_FORMATS`. The same tape
gives the same bytes. Secrets of known shapes are masked, if wanted.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..errors import TapeError, UsageError
from ..formats.sessions.loading import load_writer
from ..formats.sessions.outline import PlacedEntry, TapeOutline, to_message
from ..formats.sessions.registry import SESSION_FORMATS
from ..masking.secrets import is_sealed_member, mask_json
from ..model.entries import AgentStart, Anchor, Start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..store.refs import Head
    from ..store.tape import Tape

SESSION_WRITERS = {row.tool: row.writer for row in SESSION_FORMATS.values() if row.writer}
"""Agent → its writer: what `tape export --to` writes besides our own formats and arrays."""
INSTALLABLE = tuple(tool for tool, writer in SESSION_WRITERS.items() if writer.is_installed)
"""Agents that look for sessions in a folder."""
DOCUMENTS = tuple(tool for tool in SESSION_WRITERS if tool not in INSTALLABLE)
"""Formats of one branch that are a document of their own."""
_MAX_DEPTH = 4
"""Sub-agents of sub-agents that are read."""


class ExportedSession(NamedTuple):
    """A session in the form of another agent."""

    data: bytes
    secrets: int
    """Number of masked secrets."""
    left_out: tuple[str, ...]
    """Branches that the format cannot hold, where no branch was named."""
    outline: TapeOutline


def export_session(
    tape: Tape,
    head: Head | None,
    name: str,
    *,
    redact: bool,
    skipped: Callable[[str], None],
    with_content: bool = False,
) -> ExportedSession:
    """Return a tape as a file of `name`: all branches where the format holds them, else one.

    `head` names one branch, or an entry; None is the whole tape. `with_content` is for spans, which
    have no words without it. Entries that do not verify are left out and reported to `skipped`.
    Raises UsageError for a tape without words.
    """
    refs = tape.refs()
    is_named = head is not None
    is_whole = not is_named and SESSION_WRITERS[name].holds_branches
    head = tape.head() if head is None else head
    heads = [head]
    if is_whole:
        heads = [tape.head(name) for name in refs.branches if name != refs.current] + [head]
    outline = _read_outline(tape, heads, skipped)
    outline = outline._replace(with_content=with_content)
    lines = [*load_writer(name).write_session(outline)]
    if not lines or not any(to_message(placed.entry.data) for placed in outline.entries):
        raise UsageError("nobody says anything in this tape: there is nothing to export")
    secrets = 0
    if redact:
        masks = [mask_json(line, is_sealed_member) for line in lines]
        lines, secrets = [mask.data for mask in masks], sum(mask.secrets for mask in masks)
    others = (
        () if is_whole or is_named else tuple(name for name in refs.branches if name != head.branch)
    )
    return ExportedSession(b"".join(b"%b\n" % line for line in lines), secrets, others, outline)


def export_every_branch(
    tape: Tape,
    name: str,
    *,
    redact: bool,
    skipped: Callable[[str], None],
    with_content: bool = False,
) -> Iterator[tuple[str, ExportedSession]]:
    """Yield each branch of a tape and its file; one without messages is left out."""
    for branch in tape.refs().branches:
        with suppress(UsageError):
            head = tape.head(branch)
            yield (
                branch,
                export_session(
                    tape, head, name, redact=redact, skipped=skipped, with_content=with_content
                ),
            )


def _read_outline(
    tape: Tape, heads: list[Head], skipped: Callable[[str], None], depth: int = 0
) -> TapeOutline:
    placed: dict[str, PlacedEntry] = {}
    for head in heads:
        before: str | None = None
        for entry in tape.entries(head, skipped=skipped):
            placed.setdefault(entry.id, PlacedEntry(entry, before))
            before = entry.id
    starts = [
        placed_entry.entry.data
        for placed_entry in placed.values()
        if isinstance(placed_entry.entry.data, Start)
    ]
    first = next(iter(placed.values()))
    git = starts[0].git if starts else None
    refs = tape.refs()

    def list_kept(anchor: Anchor) -> list[str]:
        return [entry.id for entry in tape.kept(anchor, skipped)]

    imported = starts[0].imported if starts else None
    agents: dict[str, TapeOutline] = {}
    if depth < _MAX_DEPTH:
        for placed_entry in placed.values():
            if isinstance(placed_entry.entry.data, AgentStart):
                child = _read_agent(tape, placed_entry.entry.data, {*placed}, skipped, depth)
                agents |= {} if child is None else {placed_entry.entry.data.agent: child}
    return TapeOutline(
        id=tape.id,
        title=refs.title,
        cwd=starts[0].cwd if starts else "/",
        git_branch=(git.branch or "") if git else "",
        created=first.entry.time,
        entries=tuple(placed.values()),
        labels=refs.labels,
        load=tape.load,
        list_kept=list_kept,
        program=imported.tool if imported else starts[0].program if starts else "tape/0",
        branch=heads[-1].branch,
        agents=agents,
        repository=starts[0].repository if starts else None,
        person=starts[0].person if starts else None,
        machine=starts[0].machine if starts else None,
    )


def _read_agent(
    tape: Tape, start: AgentStart, seen: set[str], skipped: Callable[[str], None], depth: int
) -> TapeOutline | None:
    """Return what a sub-agent said, on its tape or its branch; None if it is not there."""
    try:
        if start.tape is None:
            outline = _read_outline(tape, [tape.head(start.branch)], skipped, depth + 1)
            own = [placed for placed in outline.entries if placed.entry.id not in seen]
            return outline._replace(entries=tuple(own), title=start.task)
        other = tape.open_linked(start.tape)
        outline = _read_outline(other, [other.head()], skipped, depth + 1)
        return outline._replace(title=outline.title or start.task)
    except TapeError:
        return None


def choose_install_path(name: str, outline: TapeOutline, environ: Mapping[str, str]) -> Path:
    """Return the file in which an agent looks for a session."""
    home = environ.get("HOME") or str(Path.home())
    folder = SESSION_FORMATS[name].find_folder(environ, home) or home
    return Path(folder, load_writer(name).build_file_name(outline))
