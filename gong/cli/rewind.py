"""`gong undo`, `gong redo` and `gong rewind`: talk and files go back together or apart, and forth.

Each shows what it would do and asks; --yes does not ask. What it cannot restore it names and keeps.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

import click

from tape.cli.output import (
    Confirmation,
    add_confirmation_options,
    as_json,
    format_examples,
    print_json,
)
from tape.cli.terminal import get_columns, paint_line, print_lines
from tape.errors import NotFound
from tape.folders import locate_repository
from tape.model.entries import Meta
from tape.places.resolve import find_reference, resolve_reference
from tape.remote.opening import open_store
from tape.render.calls import paint_patch_lines
from tape.repository import find_work_facts

from .. import config
from ..checkpoints.rewind import (
    RewindPlan,
    apply_plan,
    build_file_patches,
    plan_redo,
    plan_rewind,
    plan_undo,
)
from ..checkpoints.rewind_report import describe_plan, describe_report, shorten_path
from ..errors import NothingToUndo
from ..project import locate_folder
from .options import load_settings, place_option, print_warning, store_option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tape.store.refs import Head
    from tape.store.tape import Tape
    from tape.store.writer import Writer

    from ..checkpoints.place_disk import PlaceDisk
    from ..checkpoints.rewind import RewindReport, Scope


def _add_rewind_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that all three have."""
    options = (
        click.option(
            "--overwrite",
            multiple=True,
            metavar="PATH",
            help="Restore this file although somebody changed it since.",
        ),
        click.option(
            "-p", "--patch", "as_patch", is_flag=True, help="Show what would be done to each file."
        ),
        click.option("--session", default="", metavar="REF", help="Default: this folder's newest."),
        place_option,
        store_option,
    )
    for option in reversed(options):
        command = option(command)
    return add_confirmation_options(as_json(command))


def _add_scope_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that choose what goes back."""
    for scope, text in (
        ("files", "Only files go back."),
        ("talk", "Only the talk goes back."),
        ("both", "Talk and files go back: the default."),
    ):
        command = click.option(f"--{scope}", "scope", flag_value=scope, help=text)(command)
    return command


@click.command(
    epilog=format_examples("gong undo", "gong undo 2 --talk --yes", "gong undo --yes --json")
)
@click.argument("count", type=click.IntRange(min=1), default=1, metavar="[N]")
@_add_scope_options
@_add_rewind_options
def undo(count: int, scope: Scope | None, **how: Any) -> int:
    """Undo the newest prompt, or the newest N, with what was done to files since.

    A file that somebody changed meanwhile is a conflict: it is shown, and kept unless --overwrite
    names it. `gong redo` reverses it. A file that would be created, modified or deleted is marked
    A, M or D; -p shows how, as a patch from the folder of the session.

    --json prints {action, scope, tape, branch, entry, prompts, files: [{path, op, action, why?,
    patch?}], done}; op is created, modified, deleted, mode or, where nothing changes, null; actions
    are restored, deleted, conflict, lost, failed and same.
    """
    named = how["overwrite"]
    return _run_plan(
        lambda tape, branch, _, disk: plan_undo(
            tape, branch, count, scope or "both", named, _describe_folder, disk
        ),
        **how,
    )


@click.command(epilog=format_examples("gong redo", "gong redo --yes"))
@_add_rewind_options
def redo(**how: Any) -> int:
    """Reverse the newest undo or rewind, as a whole. --json as `gong undo`."""
    named = how["overwrite"]
    return _run_plan(
        lambda tape, branch, _, disk: plan_redo(tape, branch, named, _describe_folder, disk), **how
    )


@click.command(epilog=format_examples("gong rewind ^3", "gong rewind 3f2a:main~4 --talk --yes"))
@click.argument("ref", metavar="REF")
@_add_scope_options
@_add_rewind_options
def rewind(ref: str, scope: Scope | None, session: str, **how: Any) -> int:
    """Go back to an entry of the session; at a prompt, to before its work.

    REF is on the session's branch: ^N is before the Nth newest prompt, @LABEL a labelled entry.
    --json as `gong undo`.
    """
    if session:
        raise click.UsageError("REF names the session: omit --session")
    named = how["overwrite"]

    def plan(tape: Tape, branch: str, target: Head, disk: PlaceDisk | None) -> RewindPlan:
        return plan_rewind(tape, branch, target, scope or "both", named, _describe_folder, disk)

    return _run_plan(plan, session=ref, **how)


@contextmanager
def _open_disk(place: str | None) -> Iterator[PlaceDisk | None]:
    """Hold the files of a place, None without one; raises ConfigurationError."""
    if place is None:
        yield None
        return
    from ..checkpoints.place_disk import PlaceDisk  # seldom
    from ..env.places.opening import choose_place, open_place

    folder = locate_folder()
    settings = load_settings(folder)
    choice = choose_place(place, settings.env)
    if choice.place.is_local:
        yield None
        return
    opening = partial(open_place, choice, folder, os.environ, settings.variable_rules)
    disk = PlaceDisk(choice.place.name, opening)
    try:
        yield disk
    finally:
        disk.close()


def _run_plan(
    make_plan: Callable[[Tape, str, Head, PlaceDisk | None], RewindPlan],
    *,
    session: str,
    store: str | None,
    overwrite: tuple[str, ...],  # noqa: ARG001 (the plan has it)
    yes: bool,
    dry_run: bool,
    as_json: bool,
    as_patch: bool,
    env_place: str | None,
) -> int:
    """Plan, ask and act, while no other program can write the branch; return the exit code."""
    how = Confirmation(yes, dry_run, as_json)
    with _open_disk(env_place) as disk, _open_branch(session, store) as (tape, writer, head):
        plan = make_plan(tape, writer.branch, head, disk)
        if plan.is_empty:
            raise NothingToUndo(f"nothing to {plan.reason}: neither talk nor files would change")
        patches = build_file_patches(tape, plan, with_bytes=as_json) if as_patch else {}
        lines = describe_plan(plan, get_columns(), how_to_overwrite="--overwrite PATH")
        for patch in patches.values():
            lines += paint_patch_lines(BytesIO(patch), paint_line)
        agreed = how.confirm_plan(lines)
        report = apply_plan(tape, writer, plan) if agreed else None
        if as_json:
            print_json(_build_document(tape, writer.branch, plan, report, patches))
    if report is None:
        return how.report_refusal()
    for path, why in report.failed.items():
        print_warning(f"{shorten_path(path, plan)} was not restored: {why}")
    if not as_json:
        print_lines([describe_report(report, redo="gong redo")])
    return 1 if report.failed else 0


@contextmanager
def _open_branch(ref: str, store: str | None) -> Iterator[tuple[Tape, Writer, Head]]:
    """Hold a session's tape, its branch for writing, and the entry that the REF names."""
    folder = locate_folder()
    with open_store(config.locate_store(load_settings(store=store), os.environ)) as library:
        try:
            hit = resolve_reference(*library, ref, folder)
        except NotFound as error:
            if ref:
                raise
            raise NotFound("no session in this folder yet: start one with gong chat") from error
        branch = find_reference(*library, ref, folder).reference.branch
        with hit.tape as tape:
            branch = branch or tape.refs().current
            with tape.writer(branch) as writer:
                yield tape, writer, hit.head


def _describe_folder() -> Meta:
    """Return what an entry says of the folder here, its repository and who works in it."""
    folder, environ = locate_folder(), os.environ
    project = locate_repository(folder)
    facts = find_work_facts(project, environ, load_settings().person)
    return Meta(folder, project, facts.repository, facts.person)


def _build_document(
    tape: Tape,
    branch: str,
    plan: RewindPlan,
    report: RewindReport | None,
    patches: Mapping[str, bytes],
) -> dict[str, Any]:
    files = []
    for file in plan.files.files:
        action: str = {"restore": "restored"}.get(file.status, file.status)
        if file.status == "restore" and file.target is None:
            action = "deleted"
        why = file.why
        if report is not None and file.path in report.failed:
            action, why = "failed", report.failed[file.path]
        op = None if file.status == "same" else file.op
        document: dict[str, Any] = {"path": file.path, "op": op, "action": action}
        if why:
            document["why"] = why
        if file.path in patches:
            document["patch"] = patches[file.path].decode("utf-8", "replace")
        files.append(document)
    return {
        "action": plan.reason,
        "scope": plan.scope,
        "tape": tape.id,
        "branch": branch,
        "entry": plan.target.entry,
        "prompts": list(plan.prompts),
        "files": files,
        "done": report is not None,
    }
