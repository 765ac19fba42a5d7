"""`gong env`: the places that the settings name, and whether one does what sessions need."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

import click

from tape.cli.output import as_json, format_examples, print_json
from tape.cli.terminal import format_table, print_lines

from ..env.conformance import CASES, run_cases
from ..env.places.opening import choose_place, open_place
from ..errors import GongError
from ..project import locate_folder
from .options import load_settings, print_warning

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..config import PlaceSettings
    from ..env.places.environment import PlaceEnvironment

_PROGRESS_CASES = 25


@click.group(name="env")
def env() -> None:
    """Places where tools can act: containers, machines by ssh, pods; see docs/places.md."""


@env.command(name="list", epilog=format_examples("gong env list"))
@as_json
def list_places(as_json: bool) -> None:
    """List the places that the settings name.

    --json prints [{name, place, folder, program}].
    """
    tables: Mapping[str, PlaceSettings] = load_settings(locate_folder()).env
    rows = [
        {"name": name, "place": table.place, "folder": table.folder, "program": table.program}
        for name, table in tables.items()
    ]
    if as_json:
        print_json(rows)
        return
    lines = [(name, table.place, table.folder) for name, table in tables.items()]
    if not lines:
        print_lines(["no places: write a table [env.NAME] into config.toml"])
        return
    print_lines(format_table(lines, headings=("NAME", "PLACE", "FOLDER")))


@env.command(epilog=format_examples("gong env check docker:app", "gong env check gpu --json"))
@click.argument("place", metavar="PLACE")
@as_json
def check(place: str, as_json: bool) -> int:
    """Check whether a place does what sessions need: more than 150 cases in a folder of its own.

    PLACE is a place or the name of one in the settings. The folder is removed afterwards.
    With --json the report is one document: what the place is, and which cases failed.
    """
    folder = locate_folder()
    settings = load_settings(folder)
    choice = choose_place(place, settings.env)

    async def run() -> int:
        opened = await open_place(choice, folder, os.environ, settings.variable_rules)
        try:
            return await _check_place(opened, as_json=as_json)
        finally:
            await opened.cleanup()

    return asyncio.run(run())


async def _check_place(opened: PlaceEnvironment, *, as_json: bool) -> int:
    began = time.monotonic()
    for remark in opened.remarks:
        print_warning(remark)
    if not opened.temporary_directory:
        raise GongError(f"{opened.name} has no folder for temporary files: nothing can be tried")
    result = await opened.exec_command('mktemp -d "${TMPDIR:-/tmp}/gong-check-XXXXXX"')
    own = result.output.decode("utf-8", "surrogateescape").strip()
    if result.exit_code or not own.startswith("/"):
        raise GongError(f"{opened.name}: no folder could be made: {own}")
    failed, done = [], 0
    try:
        async for case, wrong in run_cases(opened, own):
            done += 1
            if wrong:
                failed.append({"case": case.name, "why": wrong})
                print_warning(f"{case.name}: {wrong}")
            elif not as_json and done % _PROGRESS_CASES == 0:
                print_lines([f"{done} of {len(CASES)}"])
    finally:
        await opened.exec_command('chmod -R u+rwx "$D"; rm -rf "$D"', env_vars={"D": own})
    seconds = round(time.monotonic() - began, 1)
    if as_json:
        facts = {"place": opened.name, "folder": opened.working_directory}
        facts["system"] = opened.os_version
        lists = {"programs": opened.programs, "remarks": opened.remarks}
        print_json({**facts, **lists, "seconds": seconds, "cases": done, "failed": failed})
    else:
        programs = ", ".join(opened.programs) or "none of bash, git, rg, python3, setsid"
        print_lines([
            f"{opened.name} in {opened.working_directory}: {opened.os_version}; {programs}",
            f"{done - len(failed)} of {done} cases pass, in {seconds:g} s",
        ])  # fmt: skip
    return 1 if failed else 0
