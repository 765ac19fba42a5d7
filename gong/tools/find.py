"""find: files and folders by the pattern of their names."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from tape.blocks import Text

from .locate import locate, printable_path
from .searching import cap_reached, limit_reached, noted
from .settings import Caps, Tuning
from .text_files import failure
from .tool import Tool, ToolResult
from .truncate import in_short, kept_whole, truncate_head

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..env.protocol import ExecutionEnvironment, Listed
    from .tool import ToolContext

DEFAULT_LIMIT = 1000
NOTHING = "No files found matching pattern"


class Arguments(Struct, frozen=True):
    """What to look for, and where."""

    pattern: Annotated[str, Meta(description="Pattern of names, such as *.py or src/**/*.ts")]
    path: Annotated[str, Meta(description="Folder to look in; here if absent")] = "."
    limit: Annotated[int, Meta(ge=1, description="Names to show at most")] = DEFAULT_LIMIT


class Details(Struct, frozen=True):
    """What was found."""

    pattern: str
    result_count: int
    truncated: bool


async def run(
    arguments: Arguments,
    context: ToolContext,
    *,
    caps: Caps = Caps(None),  # noqa: B008 (a frozen value)
) -> ToolResult:
    """Return the paths, folders with "/", in the order of their names."""
    found = await matching(context.env, arguments.path, arguments.pattern)
    if isinstance(found, ToolResult):
        return found
    more = limit_reached(arguments.limit, "results", "limit")
    return listed(found, arguments.pattern, caps, arguments.limit, more)


async def matching(
    env: ExecutionEnvironment, path: str, pattern: str
) -> tuple[Listed, ...] | ToolResult:
    """Return what matches below a folder, or what went wrong."""
    try:
        return await env.glob(await locate(env, path), pattern)
    except FileNotFoundError:
        return ToolResult.error(f"Path not found: {path}", kind="FileNotFound")
    except OSError as error:
        return ToolResult.error(failure(error, path))
    except ValueError as error:
        return ToolResult.error(str(error), kind="ValidationError")


def listed(found: Sequence[Listed], pattern: str, caps: Caps, limit: int, more: str) -> ToolResult:
    """Return the first of what was found; `more` is said where the limit leaves some out."""
    if not found:
        return ToolResult.from_text(NOTHING, Details(pattern, 0, truncated=False))
    names = [_label(one) for one in found]
    cut = truncate_head("\n".join(names[:limit]), *caps)
    notices = [more] if len(found) > limit else []
    if cut.truncated:
        notices.append(cap_reached(cut))
    details = Details(pattern, min(len(found), limit), truncated=bool(notices))
    full = kept_whole("\n".join(names)) if notices else None
    return ToolResult((Text(noted(cut.content, notices)),), details, full=full)


def _label(one: Listed) -> str:
    name = printable_path(one.path)
    return f"{name}/" if one.is_dir else name


def find(tuning: Tuning = Tuning()) -> Tool:  # noqa: B008 (a frozen value)
    """Return the tool as it is set."""
    caps = tuning.caps("find", by_lines=False)
    return Tool(
        name="find",
        description=(
            "Find files and folders by a pattern of their names, in all folders below. Hidden ones"
            " too, but not what .gitignore leaves out; links are shown and not followed. At most"
            f" {DEFAULT_LIMIT} results or {in_short(caps.max_bytes)}."
        ),
        arguments=Arguments,
        run=partial(run, caps=caps),
        replay="safe",
    )


TOOL = find()
