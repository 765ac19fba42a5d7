"""A report as one HTML page that nothing else belongs to: it runs no script and asks for nothing.

Invariant: the page forbids scripts and requests, whatever its body holds.
"""

from __future__ import annotations

from html import escape

from tape.text import show_controls

_STYLE = """
:root{color-scheme:light dark;--line:#8886;--ok:#2a8a4a;--bad:#c0392b;--busy:#b7791f}
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}
h1{font-size:1.3rem} .wide{overflow-x:auto} table{border-collapse:collapse;width:100%}
td,th{border-bottom:1px solid var(--line);padding:.35rem .5rem;text-align:left;vertical-align:top}
pre,td{overflow-wrap:anywhere} pre{white-space:pre-wrap}
"""


def escape_text(text: str) -> str:
    """Return a text as HTML, with control characters and changes of direction made visible."""
    return escape(show_controls(text))


def build_html_page(title: str, body: str, style: str) -> str:
    """Return a page with a title, which is plain text, and a body, which is HTML."""
    title = escape_text(title)
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width,initial-scale=1'>"
        "<meta http-equiv=Content-Security-Policy"
        " content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{title}</title><style>{_STYLE}{style}</style><h1>{title}</h1>{body}</html>\n"
    )
