"""fsck: what each finding of verify means for people, and the repair of what can be repaired.

Invariant: no data is lost. What a repair removes is first stored in `quarantine/` or in the store's
trash, and damaged lines with good lines after them are never touched.
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
