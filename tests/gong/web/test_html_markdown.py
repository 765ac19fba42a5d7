"""HTML as Markdown: thirty pages with their truth, another converter as judge, and bad HTML."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.web.html_markdown import MAX_MARKDOWN_CHARS, convert_page, convert_region
from gong.web.main_region import find_main_region, is_dropped
from tests.gong.web.pages import BASE, PAGES, page

FENCE = re.compile(
    r"^(?P<indent>[ >]*)(?P<fence>`{3,})(?P<lang>[\w+#.-]*)\n(?P<code>.*?)^(?P=indent)(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
NO_WORDS = re.compile(r"\]\([^)]*\)|<br>|<https?:[^>]*>|^\W*`{3,}[\w+#.-]*$|\$.*?\$", re.MULTILINE)


def convert(html):
    return convert_page(html.encode(), BASE)[0]


def read_fences(markdown):
    """Return the code of each fence, without what a list puts before its lines."""
    fences = []
    for match in FENCE.finditer(markdown):
        indent = len(match["indent"])
        fences.append("\n".join(line[indent:] for line in match["code"].split("\n"))[:-1])
    return fences


@pytest.mark.parametrize("case", PAGES, ids=[case.name for case in PAGES])
def test_a_page_becomes_its_text(case):
    """M195: every line of code to the letter, links absolute, and nothing of what is around."""
    markdown = convert(case.html)
    assert "NOISE" not in markdown
    assert read_fences(markdown) == [*case.code]
    for text in case.text:
        assert text in markdown
    for label, target in case.links:
        assert f"[{label}]({target})" in markdown
    for row in case.rows:
        assert row in markdown.split("\n")
    for target in re.findall(r"\]\(([^)]*)\)", FENCE.sub("", markdown)):
        assert target.startswith(("https://", "mailto:"))


def test_there_are_thirty_pages():
    assert len({case.name for case in PAGES}) == 30


OTHERS = [case for case in PAGES if case.name != "katex"]
"""Formulas are twice in their page, and each converter takes another one."""


@pytest.mark.parametrize("case", OTHERS, ids=[case.name for case in OTHERS])
def test_words_and_links_are_those_of_another_converter(case):
    """markdownify reads the same region, without what is dropped, and has the same words."""
    markdownify = pytest.importorskip("markdownify")
    from lxml import etree

    root = etree.fromstring(case.html.encode(), etree.HTMLParser(encoding="utf-8"))
    region = find_main_region(root)
    ours = convert_region(region, BASE)
    for element in [*region.iter()]:
        if element is not region and is_dropped(element, is_in_body=region.tag == "body"):
            parent, before = element.getparent(), element.getprevious()
            if parent is None:
                continue
            if before is not None:
                before.tail = (before.tail or "") + (element.tail or "")
            else:
                parent.text = (parent.text or "") + (element.tail or "")
            parent.remove(element)
    theirs = markdownify.markdownify(etree.tostring(region, encoding="unicode", with_tail=False))
    assert read_words(ours) == read_words(theirs)


def read_words(markdown):
    """Return the words of a text, without addresses, names of languages and formulas."""
    return sorted(re.findall(r"[A-Za-z]{2,}", NO_WORDS.sub(" ", markdown).replace("\\", "")))


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("", ""),
        ("<p>", ""),
        ("just text", "just text"),
        ("<p>a<p>b", "a\n\nb"),
        ("<b><i>x</b></i>", "***x***"),
        ("<p>a <b> b </b> c", "a **b** c"),
        ("<p>a<b></b>b<a href=x></a>", "ab"),
        ("<p>1 &lt; 2 &amp;&amp; 3 > 2", "1 < 2 && 3 > 2"),
        ("<ul><ul><li>a</ul></ul>", "- a"),
        ("<li>alone", "- alone"),
        ("</div></p>x", "x"),
        ("<table><tr><td>1<td>2</table>", "1\n\n2"),
        ("<table><tr><td>1<tr><td>2<td>3</table>", "|  |  |\n| --- | --- |\n| 1 |  |\n| 2 | 3 |"),
        ("<table><tr><td>only</table>", "only"),
        ("<table></table>", ""),
        ("<p>`tick` <code>a`b</code>", "`tick` ``a`b``"),
        ("<h1>A<br>B</h1>", "# A B"),
        ("<p>x<br><br>y", "x  \n  \ny"),
        ("<pre></pre><pre>  </pre>", ""),
        ("<pre>\n\n a\n\n</pre>", "```\n\n a\n```"),
        ("<a href='http://[bad'>x</a>", "x"),
        ("<td>cell", "cell"),
        ("<img alt=x>", "x"),
        ("<ol start=x><li>a<li>b</ol>", "1. a\n2. b"),
        ("<p>a\x0bb\x00c", "a b\ufffdc"),
    ],
)
def test_small_and_broken_html(html, markdown):
    assert convert(f"<body>{html}") == markdown


def test_spans_of_tables_are_bounded():
    html = "<table>" + "<tr><td colspan=99999999 rowspan=999>a</td></tr>" * 3 + "</table>"
    assert len(convert(page(html))) < 10_000


@pytest.mark.parametrize(
    "tag",
    [
        *("div", "b", "ul><li", "blockquote"),
        *(pytest.param(tag, marks=pytest.mark.slow) for tag in ("table><tr><td", "a href=x")),
    ],
)
def test_html_that_is_nested_very_deeply_keeps_its_words(tag):
    end = re.split(r"[ >]", tag)[0]
    opened, closed = f"<{tag}>" * 100_000, f"</{end}>" * 100_000
    html = f"<title>T</title><body>before{opened}deep words{closed}<p>after"
    markdown, title = convert_page(html.encode(), BASE)
    assert title == "T"
    assert all(word in markdown for word in ("before", "deep words", "after"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["p", "tr"])
def test_a_very_long_page_is_left_where_no_model_would_follow(kind):
    rows = f"<{kind}><td>word<td>word</{kind}>" if kind == "tr" else "<p>words of a line</p>"
    text = rows * (MAX_MARKDOWN_CHARS // 10)
    markdown = convert(page(f"<main>{'<table>' if kind == 'tr' else ''}{text}"))
    assert MAX_MARKDOWN_CHARS < len(markdown) < 2 * MAX_MARKDOWN_CHARS
    assert kind == "tr" or markdown.endswith("\n[The page is longer: the rest of it is left out.]")


def test_articles_in_articles_are_one_page():
    html = page(f"{'<article>' * 900}<p>the words{'</article>' * 900}")
    assert convert(html) == "the words"


def test_a_main_part_without_words_is_not_believed():
    text = "Words that count. " * 50
    html = page(f"<main><div id=app></div></main><div class=x><p>{text}</p></div>")
    assert text.strip() in convert(html)


def test_a_self_closed_script_and_comments_are_no_text():
    assert (
        convert(page("<main><!-- no --><p>yes</p><script>no()</script><?php no ?></main>")) == "yes"
    )


TAGS = "div p a b em code pre ul ol li table tr td th caption h1 blockquote dl dt dd math main nav"
PIECES = [
    *(f"<{slash}{tag}>" for slash in ("", "/") for tag in TAGS.split()),
    *("<a href='/x(1)'>", "<a href='http://[bad'>", "<base href='http://[bad'>", "<img alt=x>"),
    *("<td colspan=3 rowspan=2>", "<ol start=x>", "<pre class='language-a b'>", "<p hidden>"),
    *("<br>", "<hr>", "<!--", "-->", "<script>", "<?x", "\n", "`", "```", "&lt;x&gt;", "\0", "é"),
    *("words", " a|b "),
]


@given(pieces=st.lists(st.sampled_from(PIECES), max_size=60))
def test_any_html_becomes_markdown(pieces):
    markdown, _ = convert_page("".join(pieces).encode(), BASE)
    assert markdown == markdown.strip("\n")
