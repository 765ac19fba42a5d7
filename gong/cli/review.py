"""`gong review`: what is wrong with the changes of a repository."""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import msgspec

from tape.cli.output import as_json, format_examples, print_json
from tape.cli.terminal import print_lines
from tape.errors import TapeError
from tape.masking.secrets import mask_text
from tape.remote.opening import open_store

from .. import __version__, config
from ..agent.front_end import FrontEnd
from ..assembly import opening
from ..errors import GongError
from ..project import locate_folder
from ..review.analysers import find_with_analysers
from ..review.diff import read_changes
from ..review.findings import (
    SEVERITIES,
    FailedPart,
    ReviewScope,
    build_sarif,
    count_failing,
    format_github,
    format_text,
    merge_findings,
)
from ..review.memory import open_memory
from ..review.model import STRICTNESS, ModelAnswer, apply_fixes, ask_model
from ..review.passes import name_passes
from ..review.review import choose_findings, find_all_faults, select_files
from .options import load_settings, model_option, print_warning, store_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..config import Settings
    from ..review.diff import ReviewedFile
    from ..review.findings import ReviewFinding
    from ..review.memory import ReviewMemory

_FAILED_EXIT = 10
"""A part of the review failed: what the others found is printed."""


@click.command(epilog=format_examples("gong review --help"))
@click.argument("revisions", metavar="[RANGE]", required=False, default="")
@click.option("--staged", is_flag=True, help="Review what is staged.")
@click.option("--pr", "patch_file", type=click.File("r", errors="surrogateescape"), metavar="FILE",
              help="Review a unified diff; - is standard input.")  # fmt: skip
@click.option("--output-format", type=click.Choice(["text", "json", "sarif", "github"]),
              default="text", show_default=True, help="How findings are printed.")  # fmt: skip
@click.option("--fail-on", type=click.Choice(SEVERITIES), default="major", show_default=True,
              help="Exit with 1 for a finding as bad as this, or worse.")  # fmt: skip
@click.option("--strict", "strictness", type=click.Choice([*STRICTNESS]), default=None,
              help="How much is reported; default normal, or [review] strictness.")  # fmt: skip
@click.option("--all-lines", is_flag=True, help="Report on unchanged lines of changed files, too.")
@click.option(
    "--ignore", multiple=True, metavar="PATTERN", help="Leave out these files; repeatable."
)
@click.option("--no-model", is_flag=True, help="Do not ask a model.")
@click.option("--fix", "fixes", is_flag=True, help="Let an agent fix what is found.")
@store_option
@model_option
@as_json
def review(
    revisions: str,
    *,
    staged: bool,
    patch_file: Any,
    output_format: str,
    fail_on: Any,
    strictness: str | None,
    all_lines: bool,
    ignore: tuple[str, ...],
    no_model: bool,
    fixes: bool,
    store: str | None,
    model: str | None,
    as_json: bool,
) -> int:
    """Review changes: those of the folder, of RANGE (A..B or a commit), staged ones, a patch.

    Fixed checks run first, also ruff, bandit, semgrep, eslint and shellcheck where they are
    installed; then a model looks at security, quality and practice. Findings are about new lines.

    Exits with 1 if there is a finding at or above --fail-on, with 10 if a stage or an analyser
    failed (what the others found is printed), else with 0.
    --json prints one object: findings, each with file, lines, severity, category, text, fix and
    source; counts; and who looked: files, passes, analysers, missing ones, model, stages, failed.
    """
    if sum((bool(revisions), staged, patch_file is not None)) > 1:
        raise click.UsageError("RANGE, --staged and --pr cannot be combined")
    if revisions.startswith("-"):
        raise click.UsageError(f"{revisions} is not a range of commits")
    folder = locate_folder()
    settings = load_settings(store=store)
    chosen = strictness or settings.review.strictness
    patch = None if patch_file is None else patch_file.read()
    changes = asyncio.run(
        read_changes(folder, os.environ, revisions=revisions, staged=staged, patch=patch)
    )
    files = select_files(changes.files, (*settings.review.ignore, *ignore))
    choose = partial(choose_findings, files=files, strictness=chosen, all_lines=all_lines)
    findings = choose(find_all_faults(files, settings.review.rules))
    memory = open_memory(changes.root, os.environ)
    # Of a patch, lines may not be there: an analyser would see broken files
    whole = [file for file in files if file.is_whole]
    open_sandbox = None
    if settings.border.mode != "off":
        from ..assembly.border import build_opener  # only with a sandbox

        open_sandbox = build_opener(settings, os.environ)
    analysed = find_with_analysers(whole, os.environ, memory, open_sandbox)
    findings = merge_findings([*findings, *choose(analysed.found)])
    name = model or os.environ.get("GONG_MODEL") or settings.model
    model_name = name if files and name and not no_model else None
    answer = ModelAnswer([], [], [])
    if model_name or (files and fixes):
        answer = asyncio.run(
            _ask_model(
                settings,
                changes.root,
                files,
                name,
                chosen,
                model_name is not None,
                findings,
                memory,
                fixes=fixes,
            )
        )
        findings = merge_findings([*findings, *choose(answer.found)])
    scope = ReviewScope(
        files=len(files),
        passes=tuple(name_passes(files, settings.review.rules)),
        analysers=tuple(analysed.ran),
        missing=tuple(analysed.missing),
        model=model_name,
        stages=tuple(answer.stages),
        failed=(*analysed.failed, *answer.failed),
    )
    for failure in scope.failed:
        print_warning(f"{failure.part} failed: {failure.error}")
    _print_findings(findings, "json" if as_json else output_format, scope)
    return _FAILED_EXIT if scope.failed else int(count_failing(findings, fail_on) > 0)


def _print_findings(
    findings: Sequence[ReviewFinding], output_format: str, scope: ReviewScope
) -> None:
    if output_format == "text":
        print_lines(format_text(findings, scope))
    elif output_format == "github":
        print_lines(format_github(findings, scope))
    elif output_format == "sarif":
        print_json(build_sarif(findings, __version__, scope))
    else:
        counts = {
            severity: sum(each.severity == severity for each in findings) for severity in SEVERITIES
        }
        print_json({
            "findings": [{**msgspec.to_builtins(row), "source": row.source} for row in findings],
            "counts": counts,
            **msgspec.to_builtins(scope),
        })  # fmt: skip
    sys.stdout.flush()


async def _ask_model(
    settings: Settings,
    root: str,
    files: Sequence[ReviewedFile],
    name: str | None,
    strictness: str,
    asks: bool,
    findings: Sequence[ReviewFinding],
    memory: ReviewMemory,
    *,
    fixes: bool,
) -> ModelAnswer:
    """Return what a model finds, on a tape of its own; let findings be fixed if that is asked.

    What fails is part of the answer, so that nothing that was found is lost.
    """
    answer = ModelAnswer([], [], [])
    part = f"model {name}"
    try:
        with open_store(config.locate_store(settings, os.environ)) as library:
            program = f"gong/{__version__}"
            front = FrontEnd(library, settings, os.environ, root, program, name, print_warning)
            host = await opening.open_session(front)
            try:
                host.session.open_recorder(f"review of {len(files)} files")
                host.session.announce()
                if asks:
                    answer = await ask_model(
                        host.session, files, strictness=strictness, memory=memory
                    )
                if fixes and (findings or answer.found):
                    part = "fix"
                    chosen = merge_findings([*findings, *choose_findings(answer.found, files)])
                    print_warning(await apply_fixes(host.session, chosen))
            finally:
                await host.close()
    except (GongError, TapeError, OSError) as error:
        answer.failed.append(FailedPart(part, mask_text(str(error)).text))
    return answer
