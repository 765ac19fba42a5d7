"""Export with secrets masked, to the exact copy: whole processes, by processor time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import startup
import store
from measure import Row, Scale, by_turns

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 7


def masking_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure `tape export` of a tenth of a long session, in which there is no secret."""
    entries = scale.large // 10
    made, folder = store.built(path, entries)
    export = [str(startup.BIN / "tape"), "export", "--store", str(made.path), folder]
    pair = by_turns(
        min(scale.rounds, ROUNDS),
        lambda: startup.seconds(export, str(path)),
        lambda: startup.seconds([*export, "--no-redact"], str(path)),
    )
    name = f"tape export, masked, of {entries:,} entries"
    return [Row(name, "--no-redact", pair.ratio, "×", 3, note="processor time")]
