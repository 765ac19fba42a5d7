"""Thirty pages as generators of documentation, forums and people make them, with their truth.

Of each page the lines of code are known, sentences of its text, links, and rows of tables. What is
around it (navigation, footers, cookies, sidebars) has the word NOISE in it.
"""

from __future__ import annotations

from html import escape
from typing import NamedTuple

PYTHON = """def solve(n: int) -> int:
    \"\"\"Return <n> & more.\"\"\"

    if n < 2 and not n > 9:
        return n * 2  # `ticks` & *stars* and _bars_
\treturn [x for x in range(n)][-1]"""
SHELL = """$ curl -s 'https://x.org/?a=1&b=2' | jq '.[] | .name'
$ make -j4   &&   echo "done"  # two   spaces
```
fence in code
```"""
C = """#include <stdio.h>
int main(void) {
    printf("%d\\n", 1 << 4);   /* a | b */
    return 0;
}"""


class Page(NamedTuple):
    """A page and what its text has to have."""

    name: str
    html: str
    code: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    rows: tuple[str, ...] = ()


BASE = "https://docs.example/guide/page.html"
NAV = '<nav><ul><li><a href="/">NOISE home</a></li><li><a href="/b">NOISE b</a></li></ul></nav>'
FOOTER = '<footer><p>NOISE © 2026 <a href="/terms">NOISE terms</a></p></footer>'
LONG = "The parser reads one token after the other and keeps the state between two calls. " * 8


def spans(code: str) -> str:
    """Return code as highlighters write it: a span around each word."""
    lines = []
    for line in code.split("\n"):
        words = line.split(" ")
        lines.append(
            " ".join(f'<span class="k">{escape(word)}</span>' if word else "" for word in words)
        )
    return "\n".join(lines)


def page(body: str, head: str = "", *, title: str = "A page") -> str:
    return (
        f"<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>{title}</title>{head}"
        "<style>.NOISE{}</style><script>var NOISE = '<p>NOISE</p>';</script></head>"
        f"<body>{body}<script>NOISE()</script></body></html>"
    )


SPHINX = page(
    f"""<div class="related" role="navigation"><h3>NOISE nav</h3></div>
    <div class="document"><div class="documentwrapper"><div class="bodywrapper">
    <div class="body" role="main"><section id="x"><h1>Solving<a class="headerlink" href="#x"
    title="Link to this heading">¶</a></h1><p>First <code class="docutils literal notranslate"><span
    class="pre">solve()</span></code> is <em>called</em>; see <a class="reference internal"
    href="../api.html#solve">the API</a>.</p>
    <div class="highlight-python notranslate"><div class="highlight"><button class="copybtn">NOISE
    copy</button><pre><span></span>{spans(PYTHON)}
</pre></div></div>
    <dl class="py function"><dt class="sig"><span class="sig-name">solve</span>(<em>n</em>)<a
    class="headerlink" href="#solve">¶</a></dt><dd><p>Returns a number.</p></dd></dl>
    </section></div></div></div><div class="sphinxsidebar" role="navigation">NOISE side</div></div>
    {FOOTER}"""
)
MKDOCS = page(
    f"""<header class="md-header">NOISE header<form role="search"><input>NOISE</form></header>{NAV}
    <main class="md-main"><div class="md-sidebar"><nav>NOISE toc</nav></div><article class="md-content">
    <h1 id="set-up">Set up <a class="headerlink" href="#set-up">#</a></h1><p>{LONG}</p>
    <div class="admonition note"><p class="admonition-title">Note</p><p>Mind the gap.</p></div>
    <div class="language-bash highlight"><pre id="c1"><span></span><code>{spans(SHELL)}
</code></pre></div><ul class="task-list"><li>one<ul><li>inner <strong>bold</strong></li></ul></li>
    <li>two</li></ul></article></main>{FOOTER}"""
)
MDBOOK = page(
    f"""<nav id="sidebar" class="sidebar">NOISE chapters</nav><div id="page-wrapper"><div
    id="content" class="content"><main><h1 id="a"><a class="header" href="#a">Ownership</a></h1>
    <p>{LONG}</p><pre><code class="language-c">{spans(C)}
</code></pre></main><nav class="nav-wrapper"><a rel="next" href="n.html">NOISE next</a></nav></div>
    </div>"""
)
RUSTDOC = page(
    f"""<nav class="sidebar">NOISE modules</nav><main><section id="main-content"><div
    class="main-heading"><h1>Struct Vec</h1><button id="copy-path">NOISE Copy</button></div>
    <details class="toggle top-doc" open><summary class="hideme"><span>NOISE Expand</span></summary>
    <div class="docblock"><p>A contiguous array, like <a href="struct.Slice.html"
    title="x"><code>Slice</code></a>.</p><div class="example-wrap"><pre
    class="rust rust-example-rendered"><code>{spans(PYTHON)}</code></pre></div></div></details>
    </section></main>"""
)
GUTTER = page(
    f"""{NAV}<main><h1>Numbers</h1><p>{LONG}</p><table class="highlighttable"><tr><td
    class="linenos"><div class="linenodiv"><pre>NOISE1
NOISE2</pre></div></td><td class="code"><div class="highlight"><pre>{spans(C)}
</pre></div></td></tr></table><p>After it.</p></main>"""
)
ROUGE = page(
    f"""<article class="post"><h1>Jekyll</h1><p>{LONG}</p><div class="language-python
    highlighter-rouge"><div class="highlight"><pre class="highlight"><code><table
    class="rouge-table"><tbody><tr><td class="rouge-gutter gl"><pre class="lineno">NOISE1
NOISE2
</pre></td><td class="rouge-code"><pre>{spans(PYTHON)}
</pre></td></tr></tbody></table></code></pre></div></div></article><aside>NOISE about</aside>"""
)
BLOB = page(
    "<div>NOISE bar</div><main><table class='highlight'>"
    + "".join(
        f'<tr><td class="blob-num" data-line-number="{n}">NOISE</td>'
        f'<td class="blob-code blob-code-inner">{spans(line)}</td></tr>'
        for n, line in enumerate(C.split("\n"), 1)
    )
    + "</table></main>"
)
README = page(
    f"""<header role="banner">NOISE</header><div id="repo"><article class="markdown-body
    entry-content"><div class="markdown-heading"><h2 class="heading-element">Install</h2><a
    class="anchor" href="#install" aria-label="Permalink"><svg>NOISE</svg></a></div><p>{LONG}</p>
    <div class="highlight highlight-source-shell"><pre>{spans(SHELL)}</pre><div
    class="zeroclipboard-container"><clipboard-copy class="clipboard-copy">NOISE</clipboard-copy>
    </div></div><p><a href="/o/r/actions"><img src="badge.svg" alt="build"></a></p></article></div>
    {FOOTER}"""
)
QUESTION = page(
    f"""<header>NOISE</header><div id="left-sidebar" class="sidebar">NOISE</div><div id="mainbar"
    role="main"><h1>Why is it <a href="/q/1">slow</a>?</h1><div class="question"><div
    class="s-prose"><p>{LONG}</p><pre class="lang-py s-code-block"><code>{escape(PYTHON)}
</code></pre></div></div><div class="answer"><p>Because of <kbd>Ctrl</kbd>+<kbd>C</kbd>.</p>
    <blockquote><p>Quoted words</p><p>second</p></blockquote></div><form>NOISE your answer<textarea>
    NOISE</textarea></form></div>"""
)
WIKI = page(
    f"""<div id="mw-navigation">NOISE</div><main id="content"><h1 id="firstHeading">Tree</h1><div
    id="mw-content-text"><div class="mw-parser-output"><p>{LONG}<sup class="reference"><a
    href="#cite-1">[1]</a></sup> Area is 10<sup>6</sup> m<sub>2</sub>.</p><h2>History<span
    class="mw-editsection">[<a href="?edit">NOISE edit</a>]</span></h2><table class="wikitable">
    <caption>Sizes</caption><tbody><tr><th>Name</th><th>Size | in m</th></tr><tr><td rowspan=2>Oak
    </td><td>20</td></tr><tr><td>30</td></tr><tr><td colspan="2">all</td></tr></tbody></table>
    <div class="toc" role="navigation">NOISE contents</div></div></div></main><div role="contentinfo">
    NOISE</div>"""
)
MDN = page(
    f"""<div class="breadcrumbs">NOISE</div><main id="content"><article><h1>Array.at()</h1>
    <section><p>{LONG}</p></section><section aria-labelledby="syntax"><h2 id="syntax"><a
    href="#syntax">Syntax</a></h2><div class="code-example"><p class="example-header"><span
    class="language-name">js</span></p><pre class="brush: js notranslate"><code>{spans(C)}
</code></pre></div><dl><dt id="i"><a href="#i"><code>index</code></a></dt><dd><p>Zero-based.</p>
    <p>More words.</p></dd></dl></section></article></main>{FOOTER}"""
)
MAN = page(
    """<div class="page-top"><a href="../index.html">NOISE man pages</a></div><nav>NOISE</nav>
    <main><pre>NAME
       ls - list directory contents

SYNOPSIS
       <b>ls</b> [<u>OPTION</u>]...   &lt;file&gt;</pre></main>""",
)
MAN_CODE = """NAME
       ls - list directory contents

SYNOPSIS
       ls [OPTION]...   <file>"""
BARE = page(
    f"""<h1>Old page</h1><p>{LONG}<p>Second paragraph <b>without</b> an end<br>and a break<ul><li>a
    <li>b</ul><pre>
{escape(C)}</pre><hr><address>me</address>"""
)
LAYOUT = page(
    f"""<table width=100%><tr><td><table><tr><td><h1>Laid out</h1><p>{LONG}</p><pre>{escape(C)}</pre>
    </td></tr></table></td></tr></table>"""
)
BLOG = page(
    f"""<div class="navbar">NOISE</div><div id="content"><article><header><h1>Title of it</h1><p>by
    Ann, 2 May</p></header><p>{LONG}</p><figure><img src="/i/a b.png" alt="A chart"><figcaption>What
    it shows</figcaption></figure><pre class="brush: python; gutter: true">{escape(PYTHON)}</pre>
    <p>End.</p></article></div><aside class="sidebar"><h3>NOISE recent</h3></aside>
    <div class="cookie-banner">NOISE cookies</div>{FOOTER}"""
)
LIST_OF_POSTS = page(
    NAV
    + "".join(
        f'<article><h2><a href="/p/{n}">Post {n}</a></h2><p>Words about number {n}. {LONG}</p></article>'
        for n in range(4)
    )
    + FOOTER
)
FORUM = page(
    f"""<header>NOISE</header><div id="main"><div class="topic-post"><p>{LONG}</p><p>How?</p></div>
    <div class="topic-post"><pre class="codeblock-buttons"><code class="hljs language-python">{spans(PYTHON)}
</code></pre><p>Like <a href="https://other.example/a_(b)">that</a>.</p></div></div>{FOOTER}"""
)
ASCIIDOC = page(
    f"""<div id="header"><h1>Manual</h1></div><div id="content"><div class="sect1"><h2
    id="_a">1. Start</h2><div class="paragraph"><p>{LONG}</p></div><div class="listingblock"><div
    class="content"><pre class="highlight"><code class="language-ruby" data-lang="ruby">{escape(C)}</code>
    </pre></div></div><table class="tableblock"><thead><tr><th>Key</th><th>Value</th></tr></thead>
    <tbody><tr><td><p class="tableblock"><code>a|b</code></p></td><td><p>one<br>two</p></td></tr>
    </tbody></table></div></div><div id="footer">NOISE</div>""".replace(
        '<div id="footer">NOISE</div>', "<footer>NOISE</footer>"
    )
)
KATEX = page(
    """<main><h1>Mass</h1><p>Energy is <span class="katex"><span class="katex-mathml"><math><semantics>
    <mrow><mi>E</mi></mrow><annotation encoding="application/x-tex">E = mc^2</annotation></semantics>
    </math></span><span class="katex-html" aria-hidden="true">NOISE</span></span> here.</p></main>"""
)
TABS = page(
    f"""<main><h1>Tabs</h1><p>{LONG}</p><div role="tabpanel"><pre><code>{escape(C)}</code></pre></div>
    <div hidden><p>NOISE not shown</p></div><div style="display: none">NOISE</div><p aria-hidden="true">
    NOISE</p><template>NOISE</template><noscript>NOISE</noscript><dialog>NOISE</dialog></main>"""
)
CARDS = page(
    """<main><h1>Choose</h1><a href="/a" class="card"><h3>First</h3><p>Words one</p></a><a
    href="b"><div>Second</div></a><p><a href="javascript:x()">Run</a> <a href="">Here</a> <a
    href="mailto:a@b.example">Mail</a> <a href="?p=2">Two</a> <a href="//cdn.example/x">Cdn</a></p>
    </main>"""
)
LISTS = page(
    f"""<main><h1>Steps</h1><ol start="3"><li>Three<pre><code>{escape(PYTHON)}</code></pre><p>then</p>
    </li><li><p>Four</p><ul><li>deep<ol><li>deeper</li></ol></li></ul></li></ol><p>End</p></main>"""
)
DEFINITIONS = page(
    """<main><dl><dt>alpha</dt><dd>The first</dd><dt>beta</dt><dd>The second<pre>beta --all  x</pre></dd>
    </dl></main>"""
)
CHROMA = page(
    f"""<main><h1>Hugo</h1><p>{LONG}</p><div class="highlight"><pre class="chroma"><code
    class="language-go" data-lang="go">"""
    + "".join(
        f'<span class="line"><span class="ln lineno">NOISE</span><span class="cl">{spans(line)}\n</span></span>'
        for line in C.split("\n")
    )
    + "</code></pre></div></main>"
)
PRISM = page(
    f"""<main><pre class="line-numbers-x language-python"><code>{spans(PYTHON)}<span aria-hidden="true"
    class="line-numbers-rows"><span></span></span></code></pre><p>Prism words.</p></main>"""
)
BREAKS = page("<main><h1>Br</h1><pre>" + "<br>".join(map(escape, C.split("\n"))) + "</pre></main>")
DOCUSAURUS = page(
    f"""<nav class="navbar">NOISE</nav><div role="region" aria-label="Skip"><a class="skip-link">NOISE</a>
    </div><main><nav aria-label="Breadcrumbs">NOISE</nav><article><div class="theme-doc-markdown">
    <header><h1>Intro</h1></header><p>{LONG}</p><h2 class="anchor">Run<a href="#run"
    class="hash-link" title="Direct link">\u200b</a></h2><div class="language-bash codeBlockContainer"><pre
    class="prism-code language-bash"><code>"""
    + "".join(
        f'<span class="token-line"><span class="token plain">{escape(line)}</span><br></span>'
        for line in SHELL.split("\n")
    )
    + """</code></pre><div class="buttonGroup"><button>NOISE</button></div></div></div></article><nav
    class="pagination-nav">NOISE</nav></main>"""
)
GODOC = page(
    f"""<header>NOISE</header><main id="main-content"><h1>package io</h1><p>{LONG}</p><details open>
    <summary>Example</summary><textarea>NOISE</textarea><pre>{escape(C)}</pre></details><table><thead>
    <tr><th>Func</th><th>Does</th></tr></thead><tbody><tr><td><a href="#Copy">Copy</a></td><td>copies
    </td></tr></tbody></table></main>"""
)
BASED = page(
    '<main><p><a href="x.html">X</a> and <img src="p.png" alt="P"></p></main>',
    '<base href="/other/">',
)
RFC = page(
    f"""<table class="ears"><thead><tr><td class="left">RFC 1</td><td>Words</td></tr></thead></table>
    <main><section><h2><a href="#s-1">1.</a> <a href="#n">Framing</a></h2><p>{LONG}<a href="#s-1"
    class="pilcrow">¶</a></p><div class="sourcecode"><pre>{escape(C)}</pre></div></section></main>"""
)

PAGES = (
    Page(
        "sphinx", SPHINX, (PYTHON,), ("First `solve()` is *called*", "Returns a number."),
        (("the API", "https://docs.example/api.html#solve"),),
    ),
    Page("mkdocs", MKDOCS, (SHELL,), ("Mind the gap.", "- one", "  - inner **bold**", "- two")),
    Page("mdbook", MDBOOK, (C,), ("# Ownership", LONG.strip())),
    Page(
        "rustdoc", RUSTDOC, (PYTHON,), ("A contiguous array",),
        (("`Slice`", "https://docs.example/guide/struct.Slice.html"),),
    ),
    Page("gutter", GUTTER, (C,), ("After it.",)),
    Page("rouge", ROUGE, (PYTHON,), ("# Jekyll",)),
    Page("blob", BLOB, (C,)),
    Page("readme", README, (SHELL,), ("## Install",)),
    Page(
        "question", QUESTION, (PYTHON,), ("> Quoted words", "> second", "`Ctrl`+`C`"),
        (("slow", "https://docs.example/q/1"),),
    ),
    Page(
        "wiki", WIKI, (), ("10^6 m_2", "Sizes", "## History"), (),
        ("| Name | Size \\| in m |", "| Oak | 20 |", "|  | 30 |", "| all |  |"),
    ),
    Page("mdn", MDN, (C,), ("## Syntax", "Zero-based.", "More words.")),
    Page("man", MAN, (MAN_CODE,)),
    Page("bare", BARE, (C,), ("Second paragraph **without** an end", "- a", "- b", "---", "me")),
    Page("layout", LAYOUT, (C,), ("# Laid out",)),
    Page(
        "blog", BLOG, (PYTHON,), ("# Title of it", "What it shows", "by Ann, 2 May"),
        (("A chart", "https://docs.example/i/a%20b.png"),),
    ),
    Page(
        "posts", LIST_OF_POSTS, (), ("Words about number 3.",),
        (("Post 0", "https://docs.example/p/0"), ("Post 3", "https://docs.example/p/3")),
    ),
    Page("forum", FORUM, (PYTHON,), ("How?",), (("that", "https://other.example/a_%28b%29"),)),
    Page(
        "asciidoc", ASCIIDOC, (C,), ("## 1. Start",), (),
        ("| Key | Value |", "| `a\\|b` | one<br>two |"),
    ),
    Page("katex", KATEX, (), ("Energy is $E = mc^2$ here.",)),
    Page("tabs", TABS, (C,), ("# Tabs",)),
    Page(
        "cards", CARDS, (), ("### First", "Words one", "Second", "Run"),
        (
            ("Two", "https://docs.example/guide/page.html?p=2"), ("Cdn", "https://cdn.example/x"),
            ("Mail", "mailto:a@b.example"),
        ),
    ),
    Page("lists", LISTS, (PYTHON,), ("3. Three", "4. Four", "   - deep", "     1. deeper", "\nEnd")),
    Page("definitions", DEFINITIONS, ("beta --all  x",), ("alpha", ":   The first")),
    Page("chroma", CHROMA, (C,), ("# Hugo",)),
    Page("prism", PRISM, (PYTHON,), ("Prism words.",)),
    Page("breaks", BREAKS, (C,)),
    Page("docusaurus", DOCUSAURUS, (SHELL,), ("# Intro", "## Run")),
    Page("godoc", GODOC, (C,), ("Example",), (), ("| Func | Does |", "| Copy | copies |")),
    Page(
        "based", BASED, (), (),
        (("X", "https://docs.example/other/x.html"), ("P", "https://docs.example/other/p.png")),
    ),
    Page("rfc", RFC, (C,), ("Framing",)),
)  # fmt: skip
