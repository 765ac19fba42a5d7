"""`completion`: the completion script of a shell, and the answers to its requests.

Invariant: an answer comes from the names of commands and options and from the index as it is
(`ref_completion`). No tape is opened, nothing is written, and no error is ever shown: on an error
there are no completions.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem, FishComplete, ShellComplete, ZshComplete

from .environment import name_complete_variable
from .output import as_json, format_examples, print_json
from .terminal import print_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from .group import GlobalOptions

_BASH_TEMPLATE = """\
%(complete_func)s() {
    local line="${COMP_LINE:0:COMP_POINT}" current before reply
    current="${line##*[[:space:]]}"
    # readline replaces what stands behind the last of its break characters, an @ itself too
    before="${current%%"${current##*[$COMP_WORDBREAKS]}"}"
    before="${before%%@}"
    COMPREPLY=()
    while IFS= read -r reply; do
        [[ -n $reply ]] && COMPREPLY+=("${reply#"$before"}")
    done < <(%(line_var)s="$line" %(complete_var)s=bash_complete "$1" 2>/dev/null)
}
complete -o default -F %(complete_func)s %(prog_name)s
"""


class _BashComplete(ShellComplete):
    """Bash splits words at `:` and `@`, so it passes the whole line and gets whole words back."""

    name = "bash"
    source_template = _BASH_TEMPLATE

    def source_vars(self) -> dict[str, Any]:  # type: ignore[override]
        """Return the values for the script; the line is passed in a variable of its own."""
        return {**super().source_vars(), "line_var": self._line_variable}

    @property
    def _line_variable(self) -> str:
        return f"{self.prog_name.upper()}_LINE"

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ[self._line_variable]
        words = click.shell_completion.split_arg_string(line)
        if line[-1:].isspace():
            return words[1:], ""
        return words[1:-1], words[-1]

    def format_completion(self, item: CompletionItem) -> str:
        """Return the word; "" for a file, which bash completes by itself."""
        return str(item.value) if item.type == "plain" else ""


SHELLS: dict[str, type[ShellComplete]] = {
    "bash": _BashComplete,
    "zsh": ZshComplete,
    "fish": FishComplete,
}
"""The shells that are known."""


@click.command(
    epilog=format_examples(
        """echo 'eval "$(tape completion bash)"' >> ~/.bashrc""",
        """echo 'eval "$(tape completion zsh)"' >> ~/.zshrc""",
        "tape completion fish > ~/.config/fish/completions/tape.fish",
    )
)
@click.argument("shell", type=click.Choice(list(SHELLS)))
@as_json
@click.pass_obj
def completion(_: GlobalOptions, shell: str, as_json: bool) -> None:
    """Print the script by which a shell completes commands, options, tapes, branches and entries.

    For bash, eval it in ~/.bashrc; for zsh in ~/.zshrc, behind compinit; for fish, write it to
    ~/.config/fish/completions/tape.fish. The examples below do that. --json prints {shell, script}.
    """
    from .group import tape  # a verb that speaks of all verbs

    print_script(
        shell, SHELLS[shell](tape, {}, "tape", name_complete_variable("tape")), as_json=as_json
    )


def print_script(name: str, shell: ShellComplete, *, as_json: bool) -> None:
    """Print the script of a shell, or {shell, script} as JSON."""
    script = shell.source()
    print_json({"shell": name, "script": script}) if as_json else print_lines([script.rstrip("\n")])


def answer_completion(instruction: str) -> int:
    """Print the completions that a shell asks for, and return 0; ignore all errors."""
    from .group import GlobalOptions, tape

    return print_completions(
        instruction,
        lambda shell: shell(tape, {"obj": GlobalOptions()}, "tape", name_complete_variable("tape")),
    )


def print_completions(
    instruction: str, build: Callable[[type[ShellComplete]], ShellComplete]
) -> int:
    """Print what a shell asks for, such as `bash_complete`; return 0 and ignore all errors."""
    try:
        completion = build(SHELLS[instruction.partition("_")[0]])
        sys.stdout.write(f"{completion.complete()}\n")
        sys.stdout.flush()
    except Exception:  # noqa: BLE001, S110 (a prompt is no place for errors)
        pass
    return 0
