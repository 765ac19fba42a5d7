"""How dangerous a shell command is: safe, ask, or dangerous, and the reason.

Text in, values out: no file is looked at and nothing is run. A whole command is as dangerous as
its most dangerous part; what is not understood is never safe.
"""

from __future__ import annotations

from . import Verdict
from .command import TooLong
from .expansion import State
from .grammar import ParserMissing
from .judge import Judge
from .level import Judgement, Level, judgement
from .places import Places

__all__ = ["REFUSAL", "Judgement", "Level", "classify", "floor"]

REFUSAL = "错误: 危险命令已被拦截。此命令可能造成不可逆损害。"
"""The refusal of a dangerous command, for the model (row M097)."""


def classify(command: str, cwd: str, home: str, roots: tuple[str, ...] = ("/tmp",)) -> Judgement:  # noqa: S108 (a name)
    """Return the most dangerous finding in a command line for bash.

    `cwd` and `home` are absolute paths; below `cwd` and `roots` files may be read unasked.
    """
    judge = Judge(Places(cwd, home, (cwd, *roots), (cwd,)))
    try:
        judge.text(command, State(home, (cwd,)), ())
    except ParserMissing:
        return judgement(Level.ASK, "cannot be analysed: tree-sitter-bash is missing", command)
    except TooLong:
        return judgement(Level.DANGEROUS, "holds more commands than can be looked at", command)
    return max(judge.found, key=lambda one: one.level, default=Judgement(Level.SAFE))


def floor(command: str, cwd: str, home: str) -> Verdict:
    """Refuse a dangerous command; no rule or mode overrides a refusal."""
    found = classify(command, cwd, home)
    if found.level < Level.DANGEROUS:
        return Verdict(allowed=True)
    text = f"{REFUSAL}\n{found.part}: {found.reason}. Find another way, or ask the user to run it."
    return Verdict(allowed=False, text=text)
