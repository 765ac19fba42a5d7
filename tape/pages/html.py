r"""A tape as one page of HTML that can be sent to anyone, and back: it holds the export itself.

    page.html  the head, a masthead written here, then two blocks of data and a script
    #archive   a JSON array of strings, one to a line: the lines of `tape export`, byte for byte
    #view      a JSON object: heads, labels, and what calls and results do to files, as diffs
    page.js    draws rows from both, only near the viewport; page.css is the style

Nothing of a tape is markup: in the masthead it is escaped, in the data every `<` is `\u003c`, and
the policy of the page allows its own script and style by their hashes, pictures of the page itself,
and no address at all. The same tape gives the same bytes.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import msgspec

from ..archive.export import export_tape
from ..errors import Damaged, NotFound
from ..model.entries import (
    Assistant,
    BlobRef,
    Checkpoint,
    Meta,
    Opaque,
    SideUsage,
    Start,
    ToolResult,
    User,
    join_texts,
    select_tool_calls,
)
from ..model.line import decode_line, read_id
from ..render.calls import render_call, render_changed_files
from ..render.entries import may_cite
from ..render.sources import describe_server_block, list_sources
from ..text import extract_title, format_count, show_controls, to_single_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..archive.export import ExportReport
    from ..model.entries import Content
    from ..model.line import Entry
    from ..render.calls import RenderedCall
    from ..render.paint import Kind
    from ..store.refs import Head
    from ..store.tape import Tape

_MAX_DIFF_LINES = 2000
"""Lines of one diff that are drawn; the rest is on the tape."""
_BACK = (
    b'<a class="tool back" href="%b" aria-label="All sessions"><svg viewBox="0 0 20 20"'
    b' aria-hidden="true"><path d="M12 4l-6 6 6 6"/></svg></a>\n'
)
_LETTERS: dict[Kind, str] = {"header": "h", "note": "n"}
"""The letter in front of a line of a diff; others begin with their sign, or a space."""


def export_page(
    tape: Tape,
    write: Callable[[bytes], object],
    *,
    head: Head | None = None,
    redact: bool = True,
    back: str = "",
    command: str = "",
) -> ExportReport:
    """Write a tape, or the path to `head`, as a page; raises as `export_tape` does.

    `back` is the address of a list of sessions that the page leads to, and `command` what continues
    the session where the page is shown.
    """
    with TemporaryFile() as lines:
        done = export_tape(tape, lines.write, head=head, redact=redact)
        lines.seek(0)
        view = _PageView()
        for line in lines:
            view.add_line(line)
        if head is not None:
            view.current = head.branch
        write(_build_page_start(view, back, command))
        lines.seek(0)
        for number, line in enumerate(lines):
            write(b",\n" * bool(number) + _encode_script_json(line[:-1].decode()))
    write(b'\n]</script>\n<script type="application/json" id="view">')
    write(_encode_script_json(view.build()))
    write(b"</script>\n<script>%b</script>\n</body>\n</html>\n" % read_asset("page.js"))
    return done


def _encode_script_json(value: object) -> bytes:
    """Return JSON that is inert within a script element: `</script>` and `<!--` need a `<`."""
    return (
        json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        .replace("<", "\\u003c")
        .encode()
    )


class _PageView:
    """What a page says about the lines of an export, collected line by line."""

    def __init__(self) -> None:
        self.title = ""
        self.prompt: str | None = None
        """The beginning of the first prompt, the title of a tape that was given none."""
        self.current = ""
        self.tape = self.cwd = ""
        self.repository = self.person = self.machine = ""
        self.first = self.last = ""
        self.models: dict[str, None] = {}
        self.entries = self.secrets = 0
        self._branches: dict[str, dict[str, Any]] = {}
        self._labels: dict[str, str | None] = {}
        self._ends: dict[str, str] = {}
        self._phase = ""
        self._blobs: dict[str, bytes | None] = {}
        self._calls: dict[str, list[dict[str, str]]] = {}
        self._changes: dict[str, str] = {}
        self._searches: dict[str, dict[int, str]] = {}
        """What blocks of providers' own tools say, by entry and place of the block."""
        self._sources: dict[str, list[dict[str, str]]] = {}
        """The pages that answers cite, by entry."""

    def add_line(self, line: bytes) -> None:
        """Take in a line of an export."""
        if line.startswith(b'{"id":"'):
            self._add_entry(line[:-1])
            return
        fields = msgspec.json.decode(line)
        match fields:
            case {"export": _, "tape": info}:
                self.tape = info["id"]
                self.secrets = fields.get("masked", {}).get("secrets", 0)
            case {"blob": str(digest), "data": data}:
                self._blobs[digest] = None if data is None else data.encode()
            case {"branch": str(name), "phase": str()}:
                self._branches[name] = fields
            case {"current": str(name)}:
                self.current = name
            case {"title": str(title)}:
                self.title = to_single_line(title)
            case {"label": str(label), "entry": entry}:
                self._labels[label] = entry
            case {"phase": str(phase)}:
                self._phase = phase

    def _add_entry(self, line: bytes) -> None:
        self.entries += 1
        self._ends[self._phase] = read_id(line)
        try:
            entry = decode_line(line, self._read_text)
        except (Damaged, ValueError, RecursionError):  # it is in the archive, whatever it is
            return
        self.first, self.last = self.first or entry.time, entry.time
        self._add_facts(entry)

    def _add_facts(self, entry: Entry) -> None:
        match entry.data:
            case User(content=content):
                self.prompt = self.prompt or extract_title(join_texts(content))
            case Assistant() as said:
                calls = [
                    render_call(call, paint=_mark_kind) for call in select_tool_calls(said.content)
                ]
                if calls:
                    self._calls[entry.id] = [
                        {
                            "head": "\n".join(map(_drop_kind, _join_head(call))),
                            "body": _join_diff(_cut_diff(call.body)) if call.is_patch else "",
                        }
                        for call in calls
                    ]
                if may_cite(said.content):
                    self._add_sources(entry.id, said.content)
                if said.model:
                    self.models[said.model] = None
            case SideUsage(model=model) if model:
                self.models[model] = None
            case ToolResult(files=files) | Checkpoint(files=files, why="restore") if files:
                lines = render_changed_files(files, self._load, _mark_kind, _MAX_DIFF_LINES)
                self._changes[entry.id] = _join_diff(tuple(lines))
            case Start() | Meta() as said:
                self.person = said.person or self.person
                self.machine = said.machine or self.machine
                if said.cwd is not None:
                    self.cwd, self.repository = said.cwd, said.repository or ""
            case _:
                cwd = getattr(entry.data, "cwd", None)
                self.cwd = cwd if isinstance(cwd, str) else self.cwd

    def _add_sources(self, entry: str, content: Content) -> None:
        blocks = {
            place: "\n".join(lines)
            for place, block in enumerate(content)
            if isinstance(block, Opaque) and (lines := describe_server_block(block.raw))
        }
        if blocks:
            self._searches[entry] = blocks
        if sources := list_sources(content):
            self._sources[entry] = [{"url": url, "title": title} for url, title in sources]

    def _load(self, ref: BlobRef) -> bytes:
        data = self._blobs.get(ref.hash)
        if data is None:
            raise NotFound(f"blob {ref.hash[:12]} is missing")
        return b64decode(data)

    def _read_text(self, ref: BlobRef) -> str:
        try:
            return self._load(ref).decode("utf-8", "replace")
        except NotFound:
            return ref.head

    def build(self) -> dict[str, Any]:
        """Return the object of `#view`."""
        branches = []
        for name, move in self._branches.items():
            pin = move.get("pin")
            head = pin["entry"] if pin else self._ends.get(move["phase"])
            if head is not None:
                branches.append({"name": name, "head": head, "current": name == self.current})
        return {
            "tape": self.tape,
            "cwd": self.cwd,
            "branches": branches,
            "labels": {name: entry for name, entry in self._labels.items() if entry},
            "calls": self._calls,
            "changes": self._changes,
            "searches": self._searches,
            "sources": self._sources,
        }


def _mark_kind(kind: Kind, text: str) -> str:
    """Return a line with what it is in front; NUL tells it from text, which has none."""
    return f"\0{_LETTERS.get(kind, '')}{text}"


def _join_head(call: RenderedCall) -> tuple[str, ...]:
    """Return the lines that stand above the result of a call."""
    return call.head if call.is_patch else (*call.head, *call.body)


def _drop_kind(line: str) -> str:
    return line.removeprefix("\0")


def _join_diff(lines: tuple[str, ...]) -> str:
    drawn = [_drop_kind(line) if line[:1] in {"\0", " "} else f" {line}" for line in lines]
    return "\n".join(drawn)


def _cut_diff(lines: tuple[str, ...]) -> tuple[str, ...]:
    more = len(lines) - _MAX_DIFF_LINES
    if more <= 0:
        return lines
    return (*lines[:_MAX_DIFF_LINES], _mark_kind("note", f"… {more} more lines of this diff"))


def _build_page_start(view: _PageView, back: str, command: str) -> bytes:
    """Return the page up to the archive."""
    script, style = read_asset("page.js"), read_asset("page.css")
    facts = [
        [show_controls(view.cwd), _describe_span(view.first, view.last)],
        [*map(show_controls, map(to_single_line, _name_place(view)))],
        [", ".join(map(to_single_line, view.models))],
        [f"Tape {view.tape[:12]}", format_count(view.entries, "entry")],
    ]
    rows = [
        f"<p>{' '.join(f'<span>{escape(fact)}</span>' for fact in row if fact)}</p>"
        for row in facts
        if any(row)
    ]
    if command:
        rows.append(f'<p>Continue it: <code class="command">{escape(command)}</code></p>')
    if view.secrets:
        rows.append(f'<p class="masked">{format_count(view.secrets, "secret")} masked</p>')
    policy = (
        f"default-src 'none'; script-src {_name_hash(script)}; style-src {_name_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    parts = {
        "policy": policy.encode(),
        "style": style,
        "title": escape(to_single_line(view.title or view.prompt or "A session")).encode(),
        "facts": "\n".join(rows).encode(),
        "back": _BACK % escape(back).encode() if back else b"",
    }
    return re.sub(
        rb"\{(policy|style|title|facts|back)\}",
        lambda match: parts[match[1].decode()],
        read_asset("page.html"),
    )


def _name_place(view: _PageView) -> list[str]:
    """Return whose session it was and where; no machine alone, as in the other page."""
    if not (view.repository or view.person):
        return []
    return [view.repository, view.person, f"on {view.machine}" if view.machine else ""]


def _describe_span(first: str, last: str) -> str:
    """Return two times as `2026-11-18, 11:06 to 11:11 UTC`."""
    same_day = first[:10] == last[:10]
    end = last[11:16] if same_day else f"{last[:10]}, {last[11:16]}"
    return f"{first[:10]}, {first[11:16]} to {end} UTC"


def _name_hash(text: bytes) -> str:
    return f"'sha256-{b64encode(sha256(text).digest()).decode()}'"


def read_asset(name: str) -> bytes:
    """Return a file that pages are made of."""
    return files(__package__).joinpath("page", name).read_bytes()
