"""Run one command: its exit code, and its errors as one line on standard error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ..damage import catch_damage_warnings
from ..locks import DEFAULT_LOCK_WAIT, limit_lock_wait
from .group import GlobalOptions, tape
from .plain import print_warning, silence_stdout
from .streams import use_visible_streams

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

INTERRUPTED_CODE = 130


def run_command(arguments: Sequence[str]) -> int:
    """Run a command of `tape` and return its exit code."""
    options = GlobalOptions()
    with limit_lock_wait(DEFAULT_LOCK_WAIT, print_warning):
        return run_guarded(
            "tape", lambda: invoke_group(tape, arguments, options), lambda: options.debug
        )


def invoke_group(group: click.Group, arguments: Sequence[str], options: object = None) -> int:
    """Run a click group with these arguments, and return the exit code."""
    try:
        with group.make_context(group.name, list(arguments), obj=options) as ctx:
            code = group.invoke(ctx)
    except click.exceptions.Exit as end:
        code = end.exit_code
    sys.stdout.flush()
    return int(code or 0)


def run_guarded(program: str, command: Callable[[], int], debug: Callable[[], bool]) -> int:
    """Return the exit code of `command`; print an error as one line, with a traceback if `debug`.

    An error gives its own exit code in the attribute `exit_code`.
    """
    with use_visible_streams():
        return _run_reporting_errors(program, command, debug)


def _run_reporting_errors(
    program: str, command: Callable[[], int], debug: Callable[[], bool]
) -> int:
    try:
        try:
            with catch_damage_warnings(lambda text: print_warning(text, program)):
                return command()
        except BrokenPipeError:
            raise
        except Exception as error:  # noqa: BLE001 (the top of a command line: every error is told)
            if debug():
                import traceback  # noqa: PLC0415 (slow to load, and seldom needed)

                traceback.print_exc()
            return _report_error(program, error)
    except BrokenPipeError:
        silence_stdout()
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED_CODE


def _report_error(program: str, error: Exception) -> int:
    """Print an error and return its exit code."""
    try:
        sys.stdout.flush()  # output from before the error comes first
    except BrokenPipeError:
        raise
    except OSError:
        silence_stdout()  # a full disk, for example: do not retry the flush at exit
    match error:
        case click.exceptions.NoArgsIsHelpError():
            error.show()
            return 2
        case click.UsageError():
            verb = error.ctx.command_path if error.ctx else program
            print_warning(f"{error.format_message().rstrip('.')}; see `{verb} --help`", program)
            return 2
        case click.Abort():
            return INTERRUPTED_CODE
        case _ if hasattr(error, "exit_code"):
            print_warning(str(error), program)
            return int(error.exit_code)
        case OSError(strerror=str()):
            told = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
            print_warning(str(told), program)
        case _:
            print_warning(f"{type(error).__name__}: {error}; --debug shows where", program)
    return 1
