"""`gong eval run`: tasks tried by an agent, judged by their tests, and shown."""

from __future__ import annotations

import asyncio
import fnmatch
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tape.cli.files import require_writable, write_output
from tape.cli.output import as_json, format_examples, print_json
from tape.cli.terminal import format_table, print_lines, show_progress

from ..errors import ConfigurationError
from ..evals.junit import build_junit
from ..evals.page import build_page
from ..evals.places import PLACE_KINDS, choose_kind
from ..evals.result import RunChoices, RunFolder, TryResult
from ..evals.runner import EvalRun, RunLimits
from ..evals.summary import (
    HEADINGS,
    format_result,
    format_total,
    list_rows,
    sum_results,
)
from ..evals.task import find_tasks
from ..private_files import locate_config_file
from .eval_tasks import task_paths
from .options import complete_model, effort_option, load_settings, print_warning, store_option
from .printing import LIMIT_EXIT

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from ..evals.places import PlaceKind
    from ..evals.result import AgentKind
    from ..evals.task import Task
    from ..llm.models import EffortChoice

RUNS_FOLDER = "gong-evals"
_ERROR_EXIT = 1
_SHOW_SECONDS = 0.5

_EXAMPLES = format_examples(
    "gong eval tasks -m offline/rules",
    "gong eval tasks --agent solution --junit junit.xml",
)


class EvalOptions(NamedTuple):
    """The values of the options as click read them."""

    paths: tuple[Path, ...]
    model: str | None
    agent: AgentKind
    effort: EffortChoice | None
    place: PlaceKind | None
    network: bool
    tries: int
    jobs: int
    max_cost: float | None
    max_seconds: float | None
    max_turns: int | None
    patterns: tuple[str, ...]
    folder: Path | None
    again: bool
    fail_under: float | None
    junit: Path | None
    page: Path | None
    store: str | None
    as_json: bool

    def find_tasks(self) -> list[Task]:
        """Return the tasks to try; raises ConfigurationError where --task names none."""
        tasks = find_tasks(self.paths)
        if not self.patterns:
            return tasks
        chosen = [
            task for task in tasks if any(fnmatch.fnmatchcase(task.name, p) for p in self.patterns)
        ]
        if not chosen:
            raise ConfigurationError(f"--task: no task is called {' or '.join(self.patterns)}")
        return chosen

    def locate_folder(self, model: str) -> Path:
        """Return the folder of the run: the one that is named, else one for tasks and agent."""
        if self.folder is not None:
            return self.folder
        name = self.paths[0].resolve()
        top = name.parent if name.is_file() else name
        agent = model or self.agent
        words = f"{top.name}-{agent if len(agent) < 60 else agent[-60:]}"  # noqa: PLR2004 (columns)
        return Path(RUNS_FOLDER, re.sub(r"[^A-Za-z0-9._-]+", "-", words).strip("-."))


@click.command(epilog=_EXAMPLES)
@task_paths
@click.option(
    "-m",
    "--model",
    metavar="MODEL",
    shell_complete=complete_model,
    help="provider/model that works on the tasks.",
)
@click.option(
    "--agent",
    type=click.Choice(["gong", "solution", "spoil"]),
    default="gong",
    show_default=True,
    help="Who works: gong, or the task's own solution/solve.sh or spoil.sh.",
)
@effort_option
@click.option(
    "--in",
    "place",
    type=click.Choice(PLACE_KINDS),
    help="Where: bwrap (a sandbox), podman (a container, of docker if there is no podman), or a"
    " plain folder. Default: the first of the two that works.",
)
@click.option("--network", is_flag=True, help="Open the network to tasks that do not forbid it.")
@click.option(
    "-k",
    "--tries",
    type=click.IntRange(min=1, max=10_000),
    default=1,
    show_default=True,
    metavar="N",
    help="Tries of each task.",
)
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1, max=256),
    default=1,
    show_default=True,
    metavar="N",
    help="Tries at one time.",
)
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0, min_open=True),
    metavar="USD",
    help="Max cost of the whole run.",
)
@click.option(
    "--max-time",
    "max_seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Max time of the agent in each try, where its task allows more.",
)
@click.option(
    "--max-turns", type=click.IntRange(min=1), metavar="N", help="Max model calls of each try."
)
@click.option(
    "--task", "patterns", multiple=True, metavar="PATTERN", help="Only tasks of such names."
)
@click.option(
    "--run",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help=f"Folder of the run. Default: {RUNS_FOLDER}/TASKS-MODEL.",
)
@click.option("--again", is_flag=True, help="Repeat tries that ended with an error.")
@click.option(
    "--fail-under",
    type=click.FloatRange(min=0, max=100),
    metavar="PERCENT",
    help="Exit with 1 where less is solved.",
)
@click.option(
    "--junit",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the results as JUnit XML.",
)
@click.option(
    "--page",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the results as an HTML page.",
)
@store_option
@as_json
def run(**options: Any) -> int:
    """Try tasks, and judge each try by the task's tests; what is finished is not repeated.

    DIR is a task or a folder of tasks, FILE a task.toml or a list of folders, one a line.
    The same command continues a run that was interrupted, and shows one that is finished.

    --json prints {run, choices, summary, results}: see docs/evals.md.
    """
    choices = EvalOptions(**options)
    tasks = choices.find_tasks()
    settings = load_settings(store=choices.store)
    model = choices.model or settings.model or "" if choices.agent == "gong" else ""
    if choices.model and choices.agent != "gong":
        raise click.UsageError(f"-m needs --agent gong: {choices.agent} is a script of the task")
    if not model and choices.agent == "gong":
        raise click.UsageError("name the model to measure: -m provider/model")
    for file in filter(None, (choices.junit, choices.page)):
        require_writable(file, force=True)
    kind = choose_kind(choices.place, os.environ)
    folder = RunFolder(choices.locate_folder(model))
    with folder.hold():
        _begin_run(folder, RunChoices(choices.agent, model, kind, choices.network))
        if choices.again:
            for result in folder.read_results():
                if result.is_error:
                    folder.remove_result(result)
        is_over_budget = _complete_run(folder, tasks, choices, settings)
        results = _select_results(folder, tasks)
        _show_results(folder, results, tasks, choices)
    if is_over_budget:
        left = len(tasks) * choices.tries - len(results)
        print_warning(
            f"the budget is spent: {left} tries are left; a larger --max-cost continues the run"
        )
        return LIMIT_EXIT
    summary = sum_results(results)
    is_low = choices.fail_under is not None and summary.rate * 100 < choices.fail_under
    return _ERROR_EXIT if summary.errors or is_low else 0


def _begin_run(folder: RunFolder, choices: RunChoices) -> None:
    """Keep what a run is begun with; raises ConfigurationError for another run's folder."""
    saved = folder.read_choices()
    if saved is None:
        folder.write_choices(choices)
    elif saved != choices:
        names = [
            name
            for name in ("agent", "model", "place", "network")
            if getattr(saved, name) != getattr(choices, name)
        ]
        others = ", ".join(f"{name} {getattr(saved, name) or 'none'!r}" for name in names)
        raise ConfigurationError(f"{folder.path} is a run with {others}: choose another --run")


def _complete_run(
    folder: RunFolder, tasks: Sequence[Task], options: EvalOptions, settings: Any
) -> bool:
    """Run what is not finished; return whether the budget ended that."""
    from .session import open_front_end  # loads the agent

    limits = RunLimits(
        options.tries,
        options.jobs,
        options.max_cost or 0.0,
        options.max_seconds or 0.0,
        options.max_turns or 0,
    )

    finished = len(_select_results(folder, tasks))

    def tell(result: TryResult) -> None:
        nonlocal finished
        finished += 1
        if not options.as_json:
            print_lines([format_result(result)])
            sys.stdout.flush()

    choices = folder.read_choices()
    assert choices is not None, "it was begun"
    with open_front_end(settings, choices.model or None, effort=options.effort) as front:
        own = (str(locate_config_file(os.environ).parent), str(front.library.store.path))
        hidden = (*own, str(folder.path.resolve()), str(Path.home()))
        run = EvalRun(front, folder, choices, tasks, limits, tell, hidden)
        total = len(tasks) * options.tries
        is_interrupted = False
        with show_progress("tries finished:") as show:
            try:
                asyncio.run(_show_while(run.run_tries(), lambda: show(finished, total)))
            except KeyboardInterrupt:
                is_interrupted = True
    if is_interrupted:
        print_warning(f"{finished} of {total} tries are finished; the same command continues")
        raise KeyboardInterrupt
    return run.is_over_budget


async def _show_while(work: Coroutine[Any, Any, None], show: Callable[[], None]) -> None:
    """Do work, and show now and then how far it came."""

    async def repeat() -> None:
        while True:
            show()
            await asyncio.sleep(_SHOW_SECONDS)

    showing = asyncio.create_task(repeat())
    try:
        await work
    finally:
        showing.cancel()


def _select_results(folder: RunFolder, tasks: Sequence[Task]) -> list[TryResult]:
    names = {task.name for task in tasks}
    return [result for result in folder.read_results() if result.task in names]


def _show_results(
    folder: RunFolder, results: Sequence[TryResult], tasks: Sequence[Task], options: EvalOptions
) -> None:
    summary, choices = sum_results(results), folder.read_choices()
    assert choices is not None, "it was begun"
    name = folder.path.name
    if options.as_json:
        print_json({
            "run": str(folder.path),
            "choices": choices,
            "summary": summary,
            "results": results,
        })  # fmt: skip
    elif results:
        print_lines(["", *format_table(list_rows(summary), headings=HEADINGS), ""])
        print_lines([format_total(summary), f"kept in {folder.path}"])
    if options.junit is not None:
        write_output(options.junit, build_junit(name, results))
    if options.page is not None:
        page = build_page(name, choices, results, tasks)
        write_output(options.page, page)
