"""Output limits of a tool variant: from the table of its family, or from the settings (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..truncation.pipeline import find_family_limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..settings import ToolSettings
    from ..truncation.pipeline import OutputLimits

FAMILY_LIMIT_NAMES: Mapping[str, str] = {"grep_search": "grep", "replace": "edit_file"}
"""Name of a tool variant in the table of limits, if it differs."""


def choose_family_limits(name: str, tuning: ToolSettings) -> OutputLimits:
    """Return the limits of a tool variant; settings override the table."""
    limits = find_family_limits(
        FAMILY_LIMIT_NAMES.get(name, name), tuning.output_limits, tuning.line_limits
    )
    assert limits is not None
    return limits._replace(
        chars=tuning.output_limits.get(name, limits.chars),
        lines=tuning.line_limits.get(name, limits.lines),
    )
