"""Run one command: its exit code, and its errors as one line on standard error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ..damage import tell_damage
from ..locks import PATIENT, patience
from .group import Options, tape
from .plain import silence, warn
from .streams import shown_streams

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

INTERRUPTED = 130


def run(arguments: Sequence[str]) -> int:
    """Run a command of `tape` and return its exit code."""
    options = Options()
    with patience(PATIENT, warn):
        return guarded("tape", lambda: invoke(tape, arguments, options), lambda: options.debug)


def invoke(group: click.Group, arguments: Sequence[str], options: object = None) -> int:
    """Run a click group with these arguments, and return the exit code."""
    try:
        with group.make_context(group.name, list(arguments), obj=options) as ctx:
            code = group.invoke(ctx)
    except click.exceptions.Exit as end:
        code = end.exit_code
    sys.stdout.flush()
    return int(code or 0)


def guarded(program: str, command: Callable[[], int], debug: Callable[[], bool]) -> int:
    """Return the exit code of `command`; print an error as one line, with a traceback if `debug`.

    An error gives its own exit code in the attribute `exit_code`.
    """
    with shown_streams():
        return _guarded(program, command, debug)


def _guarded(program: str, command: Callable[[], int], debug: Callable[[], bool]) -> int:
    try:
        try:
            with tell_damage(lambda text: warn(text, program)):
                return command()
        except BrokenPipeError:
            raise
        except Exception as error:  # noqa: BLE001 (the top of a command line: every error is told)
            if debug():
                import traceback  # noqa: PLC0415 (slow to load, and seldom needed)

                traceback.print_exc()
            return _told(program, error)
    except BrokenPipeError:
        silence()
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED


def _told(program: str, error: Exception) -> int:
    """Print an error and return its exit code."""
    try:
        sys.stdout.flush()  # output from before the error comes first
    except BrokenPipeError:
        raise
    except OSError:
        silence()  # a full disk, for example: do not retry the flush at exit
    match error:
        case click.exceptions.NoArgsIsHelpError():
            error.show()
            return 2
        case click.UsageError():
            verb = error.ctx.command_path if error.ctx else program
            warn(f"{error.format_message().rstrip('.')}; see `{verb} --help`", program)
            return 2
        case click.Abort():
            return INTERRUPTED
        case _ if hasattr(error, "exit_code"):
            warn(str(error), program)
            return int(error.exit_code)
        case OSError(strerror=str()):
            told = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
            warn(str(told), program)
        case _:
            warn(f"{type(error).__name__}: {error}; --debug shows where", program)
    return 1
