"""The part of a page that people come for, and what of it is not text: pure rules on a tree.

A page says it itself (`<main>`, `<article>`, well-known ids and classes), as long as that part has
a fair share of the words; else it is the body. What is dropped anywhere: code that runs, forms,
navigation, what is hidden, and the marks that link a heading to itself.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_MARKED = (
    "//main", "//*[@role='main']", "//article",
    "//*[@itemprop='articleBody']",
    "//*[@id='main-content' or @id='mw-content-text' or @id='content' or @id='bodyContent']",
    "//*[@id='main' or @id='readme']",
    "//*[contains(concat(' ', normalize-space(@class), ' '), ' markdown-body ')]",
)  # fmt: skip
"""Where pages mark their main part, the surest first."""
_MIN_SHARE, _MIN_CHARS = 0.3, 2000
"""Of the words of a page, or characters, that a marked part has where it is believed."""
_MAX_REGIONS = 50
"""Parts with the same mark that are compared; each is read for that."""
_MAX_PARENTS = 40
DROPPED_TAGS = frozenset(
    {
        "script", "style", "template", "noscript", "nav", "form", "button", "input", "select",
        "textarea", "option", "iframe", "object", "embed", "canvas", "audio", "video", "svg",
        "head", "link", "meta", "dialog", "datalist", "map", "menu",
    }
)  # fmt: skip
_AROUND_TAGS = frozenset({"header", "footer", "aside"})
"""What is dropped where it is not inside of the main part."""
_DROPPED_ROLES = frozenset(
    {"navigation", "search", "banner", "contentinfo", "complementary", "menu", "menubar", "toolbar"}
)
_DROPPED_CLASSES = frozenset(
    {
        "headerlink", "header-anchor", "heading-anchor", "anchorjs-link", "hash-link",
        "anchor-link", "sr-only", "visually-hidden", "screen-reader-text", "breadcrumb",
        "breadcrumbs",
        "skip-link", "copybtn", "copy-button", "copy-btn", "clipboard-copy", "mw-editsection",
        "linenos", "linenodiv", "lineno", "line-numbers", "line-number", "gutter", "blob-num",
        "rouge-gutter", "navbar", "nav-wrapper", "nav-chapters", "cookie-banner", "edit-this-page",
        "theme-edit-this-page", "pagination", "pagination-nav", "toc", "table-of-contents",
        "sphinxsidebar", "related", "sidebar", "katex-html", "noprint", "hideme",
    }
)  # fmt: skip
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_SELF_LINK_TEXTS = frozenset({"", "#", "¶", "§", "🔗", "\uf0c1", "link"})


def find_main_region(root: Any) -> Any:
    """Return the element that holds the main part of a page; `root` is its `html`."""
    bodies = root.xpath("//body")
    body = bodies[0] if bodies else root
    total = _count_words(body)
    for path in _MARKED:
        regions = root.xpath(path)[:_MAX_REGIONS]
        if not regions:
            continue
        sizes = [_count_words(element) for element in regions]
        best = max(range(len(regions)), key=sizes.__getitem__)
        if sizes[best] >= _MIN_CHARS or sizes[best] >= _MIN_SHARE * total:
            # several articles are a list of them: what holds them all is the main part
            if sizes[best] * 2 < sum(sizes) and path == "//article":
                return body
            return regions[best]
    return body


def _count_words(element: Any) -> int:
    """Return the characters of an element that are read, without navigation and scripts."""
    return sum(len(text.strip()) for text in _list_texts(element))


def _list_texts(element: Any) -> Iterator[str]:
    from lxml.etree import iterwalk  # an extra, and slow to load

    walk = iterwalk(element, events=("start", "end"))
    for event, child in walk:
        if event == "end":
            if child is not element and child.tail:
                yield child.tail
        elif child.tag in DROPPED_TAGS or (child is not element and child.tag in _AROUND_TAGS):
            walk.skip_subtree()
        elif child.text:
            yield child.text


def is_dropped(element: Any, *, is_in_body: bool) -> bool:
    """Whether an element is none of the text; `is_in_body` where the whole body is the region."""
    tag = element.tag
    if tag in DROPPED_TAGS or not isinstance(tag, str):
        return True
    if tag in _AROUND_TAGS and is_in_body and not _is_inside_article(element):
        return True
    if not element.attrib:
        return False
    return _is_hidden(element) or (tag == "a" and _is_self_link(element))


def _is_hidden(element: Any) -> bool:
    """Whether attributes say that an element is not shown, or not for reading."""
    get = element.get
    classes, style = get("class"), get("style")
    return (
        get("hidden", "until-found") != "until-found"
        or get("role") in _DROPPED_ROLES
        or (get("aria-hidden") == "true" and element.tag != "pre")
        or bool(style and _HIDDEN_STYLE.search(style))
        or bool(classes and not _DROPPED_CLASSES.isdisjoint(classes.lower().split()))
    )


def _is_self_link(element: Any) -> bool:
    """Whether a link is the mark of a heading that links to itself."""
    if not (element.get("href") or "").startswith("#") or len(element):
        return False
    return (element.text or "").strip().lower() in _SELF_LINK_TEXTS


def _is_inside_article(element: Any) -> bool:
    parents = islice(element.iterancestors(), _MAX_PARENTS)
    return any(parent.tag in {"article", "main", "section"} for parent in parents)
