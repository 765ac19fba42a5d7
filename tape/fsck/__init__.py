"""fsck: what each finding of verify means for people, and the mending of what can be mended.

Invariant: nothing is dropped. What mending takes from its place stands in `quarantine/` or in the
store's trash before, and damaged lines with good ones behind them are never touched.
"""

from __future__ import annotations

from .actions import Action, described
from .explain import Explanation, explanation
from .facts import Facts, facts
from .journal import rebuilt
from .mend import Mended, repair
from .plan import plan

__all__ = [
    "Action",
    "Explanation",
    "Facts",
    "Mended",
    "described",
    "explanation",
    "facts",
    "plan",
    "rebuilt",
    "repair",
]
