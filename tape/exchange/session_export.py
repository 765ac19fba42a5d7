"""A tape → a file of another agent, which that agent lists, reads and resumes.

    format     branches            file
    claude     all of them         UUID.jsonl in ~/.claude/projects/FOLDER
    codex      one                 rollout-TIME-UUID.jsonl in ~/.codex/sessions/Y/M/D
    pi         all of them         TIME_UUID.jsonl in ~/.pi/agent/sessions/--FOLDER--
    opencode   one                 a document for `opencode import`
    atif       one                 a document
    simple     one                 a document
    otlp       one                 a document of spans

The same tape gives the same bytes. Secrets of known shapes are masked, if wanted.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ..errors import TapeError, UsageError
from ..formats.sessions import (
    write_claude,
    write_codex,
    write_documents,
    write_opencode,
    write_otlp,
    write_pi,
)
from ..formats.sessions.outline import PlacedEntry, TapeOutline, to_message
from ..model.entries import AgentStart, Anchor, Start
from .secrets import is_sealed_member, mask_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..store.refs import Head
    from ..store.tape import Tape

DOCUMENTS = ("opencode", "atif", "simple", "otlp")
"""Formats of one branch that are a document of their own."""
SESSION_WRITERS = ("claude", "codex", "pi", "opencode", "atif", "simple", "otlp")
"""What `tape export --to` writes besides our own formats and message arrays."""
_WITH_BRANCHES = frozenset({"claude", "pi"})
_MAX_DEPTH = 4
"""Sub-agents of sub-agents that are read."""
INSTALLABLE = ("claude", "codex", "pi")
"""Agents that look for sessions in a folder."""


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
    is_whole = not is_named and name in _WITH_BRANCHES
    head = tape.head() if head is None else head
    heads = [head]
    if is_whole:
        heads = [tape.head(one) for one in refs.branches if one != refs.current] + [head]
    outline = _read_outline(tape, heads, skipped)
    lines = [*_write_lines(outline, name, with_content=with_content)]
    if not lines or not any(to_message(one.entry.data) for one in outline.entries):
        raise UsageError("nobody says anything in this tape: there is nothing to export")
    secrets = 0
    if redact:
        masks = [mask_json(line, is_sealed_member) for line in lines]
        lines, secrets = [mask.data for mask in masks], sum(mask.secrets for mask in masks)
    others = (
        () if is_whole or is_named else tuple(one for one in refs.branches if one != head.branch)
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
    """Yield each branch of a tape and its file; one on which nobody says anything is left out."""
    for branch in tape.refs().branches:
        with suppress(UsageError):
            head = tape.head(branch)
            yield (
                branch,
                export_session(
                    tape, head, name, redact=redact, skipped=skipped, with_content=with_content
                ),
            )


def _write_lines(outline: TapeOutline, name: str, *, with_content: bool) -> Iterator[bytes]:
    match name:
        case "claude":
            yield from write_claude.write_session(outline)
        case "codex":
            yield from write_codex.write_session(outline)
        case "pi":
            yield from write_pi.write_session(outline)
        case "opencode":
            yield msgspec.json.encode(write_opencode.build_document(outline))
        case "otlp":
            spans = write_otlp.build_spans(outline, with_content=with_content)
            yield msgspec.json.encode(spans)
        case "atif":
            yield msgspec.json.encode(write_documents.build_atif(outline))
        case _:
            yield msgspec.json.encode(write_documents.build_simple(outline))


def _read_outline(
    tape: Tape, heads: list[Head], skipped: Callable[[str], None], depth: int = 0
) -> TapeOutline:
    found: dict[str, PlacedEntry] = {}
    for head in heads:
        before: str | None = None
        for entry in tape.entries(head, skipped=skipped):
            found.setdefault(entry.id, PlacedEntry(entry, before))
            before = entry.id
    starts = [one.entry.data for one in found.values() if isinstance(one.entry.data, Start)]
    first = next(iter(found.values()))
    git = starts[0].git if starts else None
    refs = tape.refs()

    def list_kept(anchor: Anchor) -> list[str]:
        return [entry.id for entry in tape.kept(anchor, skipped)]

    imported = starts[0].imported if starts else None
    agents: dict[str, TapeOutline] = {}
    if depth < _MAX_DEPTH:
        for one in found.values():
            if isinstance(one.entry.data, AgentStart):
                child = _read_agent(tape, one.entry.data, {*found}, skipped, depth)
                agents |= {} if child is None else {one.entry.data.agent: child}
    return TapeOutline(
        id=tape.id,
        title=refs.title,
        cwd=starts[0].cwd if starts else "/",
        git_branch=(git.branch or "") if git else "",
        created=first.entry.time,
        entries=tuple(found.values()),
        labels=refs.labels,
        load=tape.load,
        list_kept=list_kept,
        program=imported.tool if imported else starts[0].program if starts else "tape/0",
        branch=heads[-1].branch,
        agents=agents,
    )


def _read_agent(
    tape: Tape, start: AgentStart, seen: set[str], skipped: Callable[[str], None], depth: int
) -> TapeOutline | None:
    """Return what a sub-agent said, on its tape or its branch; None if it is not there."""
    try:
        if start.tape is None:
            outline = _read_outline(tape, [tape.head(start.branch)], skipped, depth + 1)
            own = [one for one in outline.entries if one.entry.id not in seen]
            return outline._replace(entries=tuple(own), title=start.task)
        other = tape.open_linked(start.tape)
        outline = _read_outline(other, [other.head()], skipped, depth + 1)
        return outline._replace(title=outline.title or start.task)
    except TapeError:
        return None


def choose_install_path(name: str, outline: TapeOutline, environ: Mapping[str, str]) -> Path:
    """Return the file in which an agent looks for a session."""
    home = Path(environ.get("HOME") or Path.home())
    time = re.sub(r"[:.]", "-", outline.created[:19])
    folder = re.sub(r"[^a-zA-Z0-9]", "-", outline.cwd)
    match name:
        case "claude":
            place = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
            return place / "projects" / folder / f"{outline.uuid}.jsonl"
        case "codex":
            place = Path(environ.get("CODEX_HOME") or home / ".codex")
            day = outline.created[:10].split("-")
            return place.joinpath("sessions", *day, f"rollout-{time}-{outline.uuid}.jsonl")
        case _:
            named = f"--{outline.cwd.strip('/').replace('/', '-')}--"
            file = f"{time}_{outline.uuid}.jsonl"
            return home / ".pi/agent/sessions" / named / file
