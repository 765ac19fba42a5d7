"""Judging a call before it runs: milliseconds of processor time, nothing asked and nothing run."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING

from measure import Row, Scale

from gong.config import PermissionSettings
from gong.policy.permissions import build_policy

if TYPE_CHECKING:
    from pathlib import Path

HEREDOC = "cat > notes.md <<'END'\n" + "a line with $HOME and `ticks` | and > signs\n" * 200 + "END"
COMMANDS = {
    "a plain command": ("pytest -q tests/test_app.py", 2),
    "30 commands": (" && ".join(f"git log --oneline -{n} | head -{n}" for n in range(1, 31)), 50),
    "a heredoc of 200 lines": (HEREDOC, 50),
}
"""What is judged, and the most milliseconds that may take."""
ROUNDS = 20


def judging_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure one judgement of each command, in a policy that has judged before."""
    policy = build_policy(PermissionSettings(), str(path), {"HOME": str(path)})
    rows = []
    for name, (command, most) in COMMANDS.items():
        policy.judge("bash", {"command": command})
        times = []
        for _ in range(min(scale.rounds, ROUNDS)):
            began = time.process_time()
            policy.judge("bash", {"command": command})
            times.append(time.process_time() - began)
        rows.append(Row(f"judging {name}", "none", median(times) * 1_000, "ms", most))
    return rows
