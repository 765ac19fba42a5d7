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
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, NamedTuple

from ..archive.export import export_tape
from ..text import format_count, show_controls, to_single_line
from .growth import find_position, read_growth
from .page_view import PageView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..archive.export import ExportReport
    from ..store.refs import Head
    from ..store.tape import Tape

_BACK = (
    b'<a class="tool back" href="%b" aria-label="All sessions"><svg viewBox="0 0 20 20"'
    b' aria-hidden="true"><path d="M12 4l-6 6 6 6"/></svg></a>\n'
)
_CONNECT = "connect-src 'self'; "
_CHANGES = b'<p class="changes" id="changes"></p>\n'
_DAMAGED = (
    '<p class="masked" role="alert">Parts of this session are damaged and left out:'
    " <code>tape verify</code> says what is wrong.</p>"
)
_LIVE = b'<span class="live" id="live" role="status"></span>\n'


class ServedPage(NamedTuple):
    """What a page has that a server shows, and a file does not."""

    back: str
    """Address of the list of sessions."""
    commands: Sequence[tuple[str, str]]
    """What continues the session: an agent and its command, ours first."""
    events: str
    """Address of a stream of what is written after the page was made."""
    script: bytes
    """Another script of the page, which runs last."""
    note: str = ""
    """What is to be known of the copy that is shown; it changes with events."""
    edits: str = ""
    """Address of what changes the session; "" where nothing may be changed."""


def export_page(
    tape: Tape,
    write: Callable[[bytes], object],
    *,
    head: Head | None = None,
    redact: bool = True,
    served: ServedPage | None = None,
) -> ExportReport:
    """Write a tape, or the path to `head`, as a page; raises as `export_tape` does."""
    position = find_position(tape) if served else ""  # first: what is written now is read twice
    with TemporaryFile() as lines:
        done = export_tape(tape, lines.write, head=head, redact=redact)
        lines.seek(0)
        view = PageView()
        for line in lines:
            view.add_line(line)
        if head is not None:
            view.current = head.branch
        write(_build_page_start(view, served))
        lines.seek(0)
        _write_rest(view, lines, write, served, position)
    return done


def show_readable_page(tape: Tape, write: Callable[[bytes], object], served: ServedPage) -> None:
    """Write the page of a damaged tape with what can be read of it, which the page says.

    Raises as `read_growth` does, where nothing can.
    """
    growth = read_growth(tape, "")
    assert growth is not None  # nothing comes before its beginning
    growth.view.tape, growth.view.is_damaged = tape.id, True
    write(_build_page_start(growth.view, served))
    _write_rest(growth.view, growth.lines, write, served, growth.position)


def _write_rest(
    view: PageView,
    lines: Iterable[bytes],
    write: Callable[[bytes], object],
    served: ServedPage | None,
    position: str,
) -> None:
    """Write the page from the archive on."""
    for number, line in enumerate(lines):
        write(b",\n" * bool(number) + _encode_script_json(line[:-1].decode()))
    write(b'\n]</script>\n<script type="application/json" id="view">')
    served_fields = {}
    if served:
        served_fields = {
            "events": served.events,
            "position": position,
            "edits": bool(served.edits),
            "damaged": view.is_damaged,
        }
    write(_encode_script_json({**view.build(), **served_fields}))
    write(b"</script>\n<script>%b</script>\n" % read_asset("page.js"))
    if served:
        attributes = f'data-edits="{escape(served.edits)}" data-back="{escape(served.back)}"'
        write(b"<script %b>%b</script>\n" % (attributes.encode(), served.script))
    write(b"</body>\n</html>\n")


def _encode_script_json(value: object) -> bytes:
    """Return JSON that is inert within a script element: `</script>` and `<!--` need a `<`."""
    return (
        json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        .replace("<", "\\u003c")
        .encode()
    )


def _build_page_start(view: PageView, served: ServedPage | None) -> bytes:
    """Return the page up to the archive."""
    script, style = read_asset("page.js"), read_asset("page.css")
    period = _describe_span(view.first, view.last)
    entries = format_count(view.entries, "entry")
    facts = [
        [_build_fact(show_controls(view.cwd)), _build_fact(period, "period")],
        [_build_fact(show_controls(to_single_line(name))) for name in _name_place(view)],
        [_build_fact(", ".join(map(to_single_line, view.models)))],
        [_build_fact(f"Tape {view.tape[:12]}"), _build_fact(entries, "entries")],
    ]
    rows = [f"<p>{' '.join(filter(None, row))}</p>" for row in facts if any(row)]
    if served:
        rows += _describe_commands(served.commands)
        rows.append(f'<p class="pulled" id="note">{escape(served.note)}</p>')
    if view.is_damaged:
        rows.append(_DAMAGED)
    if view.secrets:
        rows.append(f'<p class="masked">{format_count(view.secrets, "secret")} masked</p>')
    scripts = " ".join(map(_name_hash, (script, served.script) if served else (script,)))
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src {_name_hash(style)}; "
        f"img-src data:; {_CONNECT if served else ''}base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'"
    )
    parts = {
        "policy": policy.encode(),
        "style": style,
        "title": escape(to_single_line(view.title or view.prompt or "A session")).encode(),
        "facts": "\n".join(rows).encode(),
        "back": _BACK % escape(served.back).encode() if served else b"",
        "live": _LIVE if served else b"",
        "changes": _CHANGES if served and served.edits else b"",
    }
    return re.sub(
        rb"\{(policy|style|title|facts|back|live|changes)\}",
        lambda match: parts[match[1].decode()],
        read_asset("page.html"),
    )


def _describe_commands(commands: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the command that continues a session, and folded those of other agents."""
    (name, first), *others = (tuple(map(escape, each)) for each in commands)
    yield f'<p>Continue it: <code class="command" data-agent="{name}">{first}</code></p>'
    if others:
        yield '<details class="others"><summary>In another agent</summary>'
        for name, command in others:
            yield f'<p>{name}: <code class="command" data-agent="{name}">{command}</code></p>'
        yield "</details>"


def _build_fact(text: str, name: str = "") -> str:
    """Return a fact of the masthead; those with a name are changed where entries are added."""
    identity = f' id="{name}"' if name else ""
    return f"<span{identity}>{escape(text)}</span>" if text else ""


def _name_place(view: PageView) -> list[str]:
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
