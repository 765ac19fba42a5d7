"""How dangerous a shell command is: safe, ask, or dangerous, and the reason.

Text in, values out: no file is looked at and nothing is run. A whole command is as dangerous as
its most dangerous part; what is not understood is never safe.
"""

from __future__ import annotations

from . import Verdict
from .command import CommandTooLong
from .expansion import ShellState
from .grammar import ParserMissing
from .judge import CommandJudge
from .level import DangerLevel, Judgement, build_judgement
from .places import PathContext

__all__ = ["REFUSAL", "DangerLevel", "Judgement", "check_command", "classify_command"]

REFUSAL = "错误: 危险命令已被拦截。此命令可能造成不可逆损害。"
"""The refusal of a dangerous command, for the model (row M097)."""


def classify_command(
    command: str, cwd: str, home: str, roots: tuple[str, ...] = ("/tmp",)
) -> Judgement:  # noqa: S108 (a name)
    """Return the most dangerous finding in a command line for bash.

    `cwd` and `home` are absolute paths; below `cwd` and `roots` files may be read unasked.
    """
    judge = CommandJudge(PathContext(cwd, home, (cwd, *roots), (cwd,)))
    try:
        judge.text(command, ShellState(home, (cwd,)), ())
    except ParserMissing:
        return build_judgement(
            DangerLevel.ASK, "cannot be analysed: tree-sitter-bash is missing", command
        )
    except CommandTooLong:
        return build_judgement(
            DangerLevel.DANGEROUS, "holds more commands than can be looked at", command
        )
    return max(judge.found, key=lambda one: one.level, default=Judgement(DangerLevel.SAFE))


def check_command(command: str, cwd: str, home: str) -> Verdict:
    """Refuse a dangerous command; no rule or mode overrides a refusal."""
    found = classify_command(command, cwd, home)
    if found.level < DangerLevel.DANGEROUS:
        return Verdict(allowed=True)
    text = f"{REFUSAL}\n{found.part}: {found.reason}. Find another way, or ask the user to run it."
    return Verdict(allowed=False, text=text)
