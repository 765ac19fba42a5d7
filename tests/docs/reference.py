"""Write docs/reference.md, and gong's page beside it, from what the commands say: `make docs`.

Verbs, options, examples and JSON keys come from click; only the exit codes of each verb stand
here, and `test_reference.py` sees every one of them happen.
"""

from __future__ import annotations

from pathlib import Path

import click

from tape.cli.group import VERBS, tape

from .manual import Manual, Verb, table

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference.md"

INTRODUCTION = """\
# Reference

Every verb of `tape`, as `tape VERB --help` tells it. This page is written by `make docs` from the
commands themselves, and a test runs its examples. New here? [Five minutes](tutorial.md) first;
[tapes](tapes.md) explains REF.
"""

CODES = {
    0: "ok",
    1: "error; one line on standard error says what to do, as for all others",
    2: "usage or configuration",
    3: "not found, or ambiguous",
    4: "damaged: `tape fsck` explains it",
    5: "busy: another program is writing there",
    6: "authentication",
    7: "denied",
    8: "turn or cost limit reached",
    75: "transient: try again",
    130: "interrupted",
}

CODES_LEAD = """\
The same for `tape` and `gong`. Any verb may end with 0, 1, 2 or 130, and with 4 where what it needs
is damaged; what else one may end with, and what it means there, stands with it.
"""

FINDS = (3, "REF leads to nothing, or to several things")
ENDS: dict[str, tuple[tuple[int, str], ...]] = {
    "append": (FINDS, (5, "the branch is named and somebody else writes it")),
    "show": (FINDS,),
    "log": (FINDS,),
    "cat": (FINDS,),
    "tail": (FINDS,),
    "fork": (FINDS,),
    "branches": (FINDS,),
    "switch": (FINDS,),
    "rename": (FINDS,),
    "label": (FINDS,),
    "anchors": (FINDS,),
    "context": (FINDS,),
    "diff": (FINDS,),
    "replay": (FINDS, (4, "--check finds a difference")),
    "stats": (FINDS,),
    "blame": ((3, "no tape knows of a change of FILE"),),
    "export": (FINDS, (4, "the tape is damaged; nothing is written")),
    "import": ((4, "the file is damaged; nothing is made"),),
    "rm": (FINDS, (5, "a branch is being written")),
    "restore": ((3, "no such tape is in the trash"),),
    "mv": (FINDS, (5, "a branch is being written")),
    "detach": (FINDS, (5, "a branch is being written")),
    "redact": (FINDS,),
    "verify": (FINDS, (4, "there is damage, or a torn end that nobody is writing")),
    "fsck": (FINDS, (4, "there is damage, or some is left")),
}
"""What verbs end with beyond 0, 1, 2 and 130: code and when."""


def verbs() -> list[Verb]:
    """Return the verbs in the order of the help page."""
    group = click.Context(tape, info_name="tape")
    found = [(name, line, tape.get_command(group, name)) for name, (_, line) in VERBS.items()]
    return [Verb(name, line, verb) for name, line, verb in found if verb]


def page() -> str:
    """Return the whole page."""
    shared = [option for option in tape.params if option.name != "version"]
    return Manual("tape", INTRODUCTION, verbs(), codes(), ENDS, shared).page()


def codes() -> str:
    """Return the section on exit codes."""
    rows = [f"| {code} | {meaning} |" for code, meaning in CODES.items()]
    return f"## Exit codes\n\n{CODES_LEAD}\n{table(('code', 'means'), rows)}"


if __name__ == "__main__":
    from tests.docs import reference_gong

    PAGE.write_text(page(), "utf-8")
    reference_gong.PAGE.write_text(reference_gong.page(), "utf-8")
