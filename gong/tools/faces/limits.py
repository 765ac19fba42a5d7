"""Where the results of a face are cut: by the table of its family, or as somebody set it (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..truncation.pipeline import limits_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..settings import Tuning
    from ..truncation.pipeline import Limits

IN_TABLE: Mapping[str, str] = {"grep_search": "grep", "replace": "edit_file"}
"""The name a face has in the table of limits, where that is another."""


def limits_for(name: str, tuning: Tuning) -> Limits:
    """Return the limits of a face that the table knows; what is set for its own name goes first."""
    limits = limits_of(IN_TABLE.get(name, name), tuning.output_limits, tuning.line_limits)
    assert limits is not None
    return limits._replace(
        chars=tuning.output_limits.get(name, limits.chars),
        lines=tuning.line_limits.get(name, limits.lines),
    )
