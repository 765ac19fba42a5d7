"""Source code → pieces with styles, by pygments, which is imported with the first code."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .lines import StyledPart

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_LINE = 2_000
"""Characters of a line from which on nothing is coloured: it is data, and takes long."""
_TOKEN_STYLES = {
    "Token.Keyword": "keyword",
    "Token.Literal.String": "string",
    "Token.Literal.String.Doc": "comment",
    "Token.Comment": "comment",
    "Token.Literal.Number": "number",
    "Token.Name.Function": "name",
    "Token.Name.Class": "name",
    "Token.Name.Builtin": "name",
    "Token.Name.Decorator": "name",
    "Token.Name.Tag": "keyword",
    "Token.Name.Attribute": "name",
    "Token.Name.Variable": "name",
    "Token.Operator.Word": "keyword",
    "Token.Generic.Inserted": "added",
    "Token.Generic.Deleted": "removed",
    "Token.Generic.Heading": "heading",
    "Token.Generic.Subheading": "name",
    "Token.Generic.Prompt": "faint",
    "Token.Generic.Output": "",
}


def paint_code(
    lines: Sequence[str], language: str, above: Sequence[str] = ()
) -> list[list[StyledPart]]:
    """Return each line of code in coloured pieces; `above` are the lines before, for their context.

    `language` is a name or a file name, such as "python" or "a.py"; an unknown one gives no colour.
    """
    plain = [[StyledPart(line)] for line in lines]
    lexer = _find_lexer(language.strip().lower())
    if lexer is None or any(len(line) > _MAX_LINE for line in (*above, *lines)):
        return plain
    rows: list[list[StyledPart]] = [[]]
    for token, text in lexer.get_tokens("\n".join((*above, *lines))):
        style = _find_style(token)
        first, *more = text.split("\n")
        rows[-1].append(StyledPart(first, style))
        rows += [[StyledPart(piece, style)] for piece in more]
    rows = rows[len(above) : len(above) + len(lines)]  # a newline is added at the end
    texts = ["".join(part.text for part in row) for row in rows]
    return rows if texts == list(lines) else plain


@lru_cache(maxsize=64)
def _find_lexer(language: str) -> Any:
    """Return the lexer of a language or file name; None if there is none."""
    if not language:
        return None
    from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
    from pygments.util import ClassNotFound

    find = get_lexer_for_filename if "." in language else get_lexer_by_name
    try:
        return find(language, stripnl=False, ensurenl=True)
    except ClassNotFound:
        return None


@lru_cache(maxsize=512)
def _find_style(token: Any) -> str:
    """Return the style of a token's kind, or of the nearest kind above it."""
    while token is not None:
        style = _TOKEN_STYLES.get(str(token))
        if style is not None:
            return style
        token = token.parent
    return ""
