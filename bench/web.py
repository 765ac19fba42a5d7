"""HTML as Markdown, against html2text on the same page; `pip install html2text` brings that row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from measure import Row, Scale, by_turns, seconds

from gong.web.html_markdown import convert_page

try:
    import html2text
except ImportError:  # it is GPL, and no part of anything else here
    html2text = None

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 7
SIZE = 1_000_000
_SECTION = """\
<section id="s{n}"><h2><a class="anchor" href="#s{n}">§</a>Method <code>take_{n}</code></h2>
<pre><code class="language-rust"><span class="kw">pub fn</span> take_{n}(self, n: usize)
    -&gt; <a href="../struct.Take.html">Take</a>&lt;Self&gt;</code></pre>
<p>Creates an iterator that yields the first <code>{n}</code> elements, or <em>fewer</em> if the
<a href="../trait.Iterator.html#m{n}">underlying iterator</a> ends sooner.</p>
<ul><li>It stops after <strong>{n}</strong> calls.</li><li>It is lazy, see
<a href="/a">here</a>.</li></ul>
<table><tr><th>n</th><th>yields</th></tr><tr><td>{n}</td><td>what is <b>left</b></td></tr></table>
</section>
"""


def web_rows(_path: Path, scale: Scale) -> list[Row]:
    """Return a row for a page of 1 MB, as generators of documentation write them."""
    if html2text is None:
        return []
    sections = "".join(_SECTION.format(n=n) for n in range(SIZE // len(_SECTION.format(n=1000))))
    page = f"<!DOCTYPE html><title>T</title><body><nav>x</nav><main>{sections}</main></body>"

    def convert_other() -> str:
        other = html2text.HTML2Text(baseurl="https://example.org/")
        other.body_width = 0
        return other.handle(page)

    data = page.encode()
    assert "take_100" in convert_page(data, "https://example.org/")[0]
    pair = by_turns(
        min(scale.rounds, ROUNDS),
        lambda: seconds(lambda: convert_page(data, "https://example.org/")),
        lambda: seconds(convert_other),
    )
    return [Row(f"{len(data):,} bytes of HTML as Markdown", "html2text", pair.ratio, "×", 3)]
