"""`gong completion`: the completion script of a shell, and the answers to its requests.

Invariant: as `tape completion`. No session is opened, nothing is written, no error is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, ShellComplete

from tape.cli.completion import SHELLS, print_completions, print_script
from tape.cli.environment import name_complete_variable
from tape.cli.output import as_json, format_examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@click.command(
    epilog=format_examples(
        """echo 'eval "$(gong completion bash)"' >> ~/.bashrc""",
        """echo 'eval "$(gong completion zsh)"' >> ~/.zshrc""",
        "gong completion fish > ~/.config/fish/completions/gong.fish",
    )
)
@click.argument("shell", type=click.Choice(list(SHELLS)))
@as_json
def completion(shell: str, *, as_json: bool) -> None:
    """Print the script by which a shell completes commands, options, sessions and models.

    For bash, eval it in ~/.bashrc; for zsh in ~/.zshrc, behind compinit; for fish, write it to
    ~/.config/fish/completions/gong.fish. The examples below do that. --json prints {shell, script}.
    """
    print_script(shell, _build_shell(SHELLS[shell]), as_json=as_json)


def answer_completion(instruction: str) -> int:
    """Print the completions that a shell asks for, and return 0; ignore all errors."""
    return print_completions(instruction, _build_shell)


def _build_shell(shell: type[ShellComplete]) -> ShellComplete:
    from .run import gong  # a command that speaks of all commands

    completion = shell(gong, {}, "gong", name_complete_variable("gong"))
    completion.get_completion_args = _name_chat(completion.get_completion_args)  # type: ignore[method-assign]
    return completion


def _name_chat(
    read: Callable[[], tuple[list[str], str]],
) -> Callable[[], tuple[list[str], str]]:
    """Return a reader of the line that adds `chat` where options come without a command."""

    def read_words() -> tuple[list[str], str]:
        words, incomplete = read()
        first = words[0] if words else incomplete
        return (["chat", *words] if first.startswith("-") else words), incomplete

    return read_words


def list_model_completions(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the models whose provider/model begins with what is typed, those without key too."""
    from ..llm.client import OFFLINE_MODEL  # only a shell asks
    from ..llm.models import Catalogue  # only a shell asks

    listed = {model.id: model.name for model in Catalogue.from_rows({}).list_models()}
    return [
        CompletionItem(model, help=name or None)
        for model, name in {**listed, OFFLINE_MODEL: "plain requests only"}.items()
        if model.startswith(incomplete)
    ]


def list_provider_completions(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the providers whose name begins with what is typed."""
    from ..llm.models import load_presets  # only a shell asks

    presets = load_presets({}).values()
    return [
        CompletionItem(preset.name, help=preset.label or None)
        for preset in presets
        if preset.name.startswith(incomplete)
    ]


def list_setting_completions(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the keys of settings, or the words that the setting KEY may have."""
    from ..config import list_choices, list_settings  # only a shell asks

    def list_keys(above: tuple[str, ...]) -> Iterator[str]:
        for name in list_settings(above):
            key = (*above, name)
            yield from [*list_keys(key)] or [".".join(key)]

    is_value = param.name == "value"
    key = tuple((ctx.params.get("key") or "").split("."))
    words = [*map(str, list_choices(key))] if is_value else [*list_keys(())]
    return [CompletionItem(word) for word in words if word.startswith(incomplete)]
