"""Pages from templates, and the files that they load.

Invariant: no text of a tape is markup. Each value in a template is escaped, and its control
characters are made visible, whatever the template says; a page names no script but those here.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import jinja2
from starlette.responses import HTMLResponse

from ..clock import format_age, parse_timestamp, read_clock
from ..pages import html as export_page
from ..text import format_count, show_controls, to_single_line

if TYPE_CHECKING:
    from collections.abc import Mapping


class Asset(NamedTuple):
    """A file that pages load."""

    body: bytes
    media_type: str
    digest: str
    """As the attribute `integrity` and the policy of a page have it."""

    @property
    def version(self) -> str:
        """What its address has, so that it may be kept for ever."""
        return sha256(self.body).hexdigest()[:16]


_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
SCRIPTS = ("theme.js", "htmx.js", "uplot.js", "site.js", "charts.js")
STYLES = ("page.css", "site.css", "uplot.css")
_PATHS = {name: f"vendor/{name}" for name in ("htmx.js", "uplot.js", "uplot.css")}


@cache
def load_assets() -> dict[str, Asset]:
    """Return the files that pages load, by name; the style of the export is one of them."""
    assets = {}
    for name in (*SCRIPTS, *STYLES):
        if name == "page.css":
            body = export_page.read_asset(name)
        else:
            body = read_static(_PATHS.get(name, name))
        digest = f"sha256-{b64encode(sha256(body).digest()).decode()}"
        assets[name] = Asset(body, _TYPES[name[name.rindex(".") :]], digest)
    return assets


@cache
def read_static(path: str) -> bytes:
    """Return a file below `static/`."""
    return files(__package__).joinpath("static", *path.split("/")).read_bytes()


def build_policy() -> str:
    """Return the policy of the pages here: their own scripts by hash, and no other server."""
    hashes = " ".join(f"'{load_assets()[name].digest}'" for name in SCRIPTS)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def _name_asset(name: str) -> str:
    return f"/static/{load_assets()[name].version}/{name}"


def _show_value(value: object) -> object:
    return show_controls(value) if type(value) is str else value


_CENT = 0.01


def format_money(cost: float | None) -> str:
    """Return a cost in USD; a dash where none is known."""
    if cost is None:
        return "–"
    return "< $0.01" if 0 < cost < _CENT / 2 else f"${cost:,.2f}"


def format_tokens(tokens: int) -> str:
    """Return a number of tokens in at most four digits."""
    for unit, size in (("G", 1_000_000_000), ("M", 1_000_000), ("k", 1000)):
        if tokens >= size:
            scaled = tokens / size
            return f"{scaled:.1f}{unit}" if scaled < 100 else f"{scaled:,.0f}{unit}"  # noqa: PLR2004
    return str(tokens)


def format_moment(time: str) -> str:
    """Return the day and minute of a time of a tape."""
    return f"{time[:10]} {time[11:16]}"


def _format_since(time: str) -> str:
    return format_age(read_clock() - parse_timestamp(time))


@cache
def _load_environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=True,
        finalize=_show_value,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {
        "one_line": to_single_line,
        "count": format_count,
        "money": format_money,
        "tokens": format_tokens,
        "moment": format_moment,
        "age": _format_since,
    }
    environment.globals |= {
        "asset": _name_asset,
        "digest": lambda name: load_assets()[name].digest,
    }
    return environment


def render_page(name: str, values: Mapping[str, Any], status: int = 200) -> HTMLResponse:
    """Return a template with these values as a page."""
    return HTMLResponse(_load_environment().get_template(name).render(values), status)
