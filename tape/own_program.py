"""Starting one of our own programs, `tape` or `gong`, from another one."""

from __future__ import annotations

import sys


def build_own_words(program: str, *arguments: str) -> tuple[str, ...]:
    """Return the words that start a program of ours as it is installed here.

    With `-P` no package of that name in the working folder is taken for it.
    """
    return (sys.executable, "-P", "-m", program, *arguments)
