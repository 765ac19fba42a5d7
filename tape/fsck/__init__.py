"""fsck: what each finding of verify means for people, and the repair of what can be repaired.

Invariant: no data is lost. What a repair removes is first stored in `quarantine/` or in the store's
trash, and damaged lines with good lines after them are never touched.
"""

from __future__ import annotations

from .actions import RepairAction, describe_action
from .explain import Explanation, explain_finding
from .facts import Inspection, inspect_tape
from .journal import rebuild_journal
from .mend import CompletedAction, repair_tape
from .plan import plan_repairs

__all__ = [
    "CompletedAction",
    "Explanation",
    "Inspection",
    "RepairAction",
    "describe_action",
    "explain_finding",
    "inspect_tape",
    "plan_repairs",
    "rebuild_journal",
    "repair_tape",
]
