"""Tasks that tests make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gong.evals.result import RunChoices, RunFolder, TryResult

if TYPE_CHECKING:
    from pathlib import Path

TASK_TOML = """
schema_version = "1.4"
[task]
name = "tests/made"
description = "Say hello"
[metadata]
difficulty = "easy"
[agent]
timeout_sec = 60.0
[verifier]
timeout_sec = 20
"""
JUDGE = """
mkdir -p "${VERIFIER_LOGS:-/logs/verifier}"
if [ "$(cat hello.txt 2>/dev/null)" = hello ]; then echo 1; else echo 0; fi \\
  > "${VERIFIER_LOGS:-/logs/verifier}/reward.txt"
"""


def make_task(
    folder: Path,
    *,
    toml: str | None = TASK_TOML,
    instruction: str | None = "Write hello into hello.txt.\n",
    test: str | None = JUDGE,
    solution: str | None = "echo hello > hello.txt\n",
    dockerfile: str | None = None,
) -> Path:
    """Write the folder of a task; None leaves a file out."""
    files = {
        "task.toml": toml,
        "instruction.md": instruction,
        "tests/test.sh": test,
        "solution/solve.sh": solution,
        "environment/Dockerfile": dockerfile,
    }
    for name, text in files.items():
        if text is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    return folder


def make_run(folder: Path, **solved: bool) -> None:
    """Write the folder of a run with a try of each task."""
    run = RunFolder(folder)
    run.write_choices(RunChoices("solution", "", "folder"))
    for task, is_solved in solved.items():
        run.write_result(TryResult(task, 1, "solved" if is_solved else "failed"))
