"""`gong eval list`: the tasks of a folder, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tape.cli.output import as_json, format_examples, print_json
from tape.cli.terminal import format_table, print_lines

from ..evals.task import Task, find_tasks

task_paths = click.argument(
    "paths", nargs=-1, required=True, metavar="DIR|FILE...", type=click.Path(path_type=Path)
)


@click.command(name="list", epilog=format_examples("gong eval list tasks --json"))
@task_paths
@as_json
def list(paths: tuple[Path, ...], as_json: bool) -> int:  # noqa: A001 (as the group calls it)
    """List tasks: limits of time, and what is wrong with them. Exits with 1 if something is.

    DIR is a task or a folder of tasks, FILE a task.toml or a list of folders, one a line.
    --json prints [{name, folder, description, difficulty, agent_seconds, verifier_seconds, fault}].
    """
    tasks = find_tasks(paths)
    if as_json:
        print_json([_describe_task(task) for task in tasks])
    else:
        rows = [
            (
                task.name,
                task.difficulty,
                f"{task.agent_seconds:g} s",
                task.fault or task.description,
            )
            for task in tasks
        ]
        print_lines(format_table(rows, headings=("TASK", "DIFFICULTY", "TIME", "ABOUT")))
    return int(any(task.fault for task in tasks))


def _describe_task(task: Task) -> dict[str, Any]:
    return {
        "name": task.name,
        "folder": str(task.folder),
        "description": task.description,
        "difficulty": task.difficulty,
        "agent_seconds": task.agent_seconds,
        "verifier_seconds": task.verifier_seconds,
        "fault": task.fault,
    }
