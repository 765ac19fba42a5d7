"""The program that parses one file and prints its outline, and what starts it.

With text that is no code some parsers take minutes, and some crash: each file gets a process. Its
argument is the file. Exit code 1 and one line on standard error say why there is none.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tape.own_program import build_own_words

from .grammar_outline import OutlineError, find_language, list_symbols

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    PrepareProgram = Callable[[Sequence[str]], tuple[Sequence[str], Mapping[str, str]]]
    """Returns the words and the variables with which words are started as a program."""

_MAX_SECONDS = 10.0
_MAX_OUTLINE = 4 << 20


async def read_outline(path: str, prepare: PrepareProgram) -> str:
    """Return the lines of a file's outline, empty without symbols; raises OutlineError.

    `prepare` says how the program that parses it is started.
    """
    from ..child_programs import OutputTooLong, run_for_output  # not for the program

    words, environ = prepare(build_own_words(__name__, path))
    try:
        done = await run_for_output(
            words, environ, max_bytes=_MAX_OUTLINE, seconds=_MAX_SECONDS, folder="/"
        )
    except TimeoutError:
        raise OutlineError(f"{path} has no outline: not parsed in {_MAX_SECONDS:g} s") from None
    except OutputTooLong:
        raise OutlineError(f"{path} has too many symbols for an outline") from None
    except (OSError, ValueError) as error:
        raise OutlineError(f"{path} has no outline: {error}") from error
    if done.exit_code:
        reason = done.errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise OutlineError(reason or f"{path} has no outline: its parser crashed")
    return done.output.decode("utf-8", "replace").rstrip("\n")


def print_outline() -> int:
    """Print the outline of the file that is named."""
    path = sys.argv[1]
    try:
        text = Path(path).read_bytes().decode("utf-8", "replace")
        outline = [*list_symbols(text, find_language(path) or "")]
    except (OSError, OutlineError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.buffer.writelines(f"{line}\n".encode("utf-8", "replace") for line in outline)
    return 0


if __name__ == "__main__":
    sys.exit(print_outline())
