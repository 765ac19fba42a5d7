"""What the commands share: options, the settings of this process, and warnings."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tape.cli import terminal

from ..errors import ConfigurationError, FolderGone
from ..project import locate_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.shell_completion import CompletionItem

    from ..config import PermissionSettings, Settings
    from ..context.system import PromptOverride


def complete_model(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return completions of a model: the `shell_complete` of options that are models.

    The module is loaded by its name, as the group loads commands: only a shell asks.
    """
    completion = import_module(".completion", __package__)
    items: list[CompletionItem] = completion.list_model_completions(ctx, param, incomplete)
    return items


def complete_provider(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return completions of a provider, as `complete_model` those of a model."""
    completion = import_module(".completion", __package__)
    items: list[CompletionItem] = completion.list_provider_completions(ctx, param, incomplete)
    return items


def complete_setting(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return completions of a setting's key or value, as `complete_model` those of a model."""
    completion = import_module(".completion", __package__)
    items: list[CompletionItem] = completion.list_setting_completions(ctx, param, incomplete)
    return items


store_option = click.option(
    "--store",
    metavar="PATH",
    help="Folder of the tapes, or URL of a remote; default $TAPE_HOME, ~/.tape.",
)
answer_timeout_option = click.option(
    "--answer-timeout",
    type=click.FloatRange(min=0),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a question waits for an answer: then a call is denied. 0: for ever.",
)
model_option = click.option(
    "-m",
    "--model",
    metavar="MODEL",
    shell_complete=complete_model,
    help="provider/model; default: the session's last model.",
)
effort_option = click.option(
    "-e",
    "--effort",
    type=click.Choice(["none", "low", "medium", "high", "xhigh"]),
    help="How hard the model thinks; none leaves it to the model.",
)
sandbox_option = click.option(
    "--sandbox",
    type=click.Choice(["off", "read-only", "workspace-write"]),
    help="Run programs inside a border; see docs/sandbox.md.",
)
place_option = click.option(
    "--env",
    "env_place",
    metavar="PLACE",
    help="Where tools act: a place or the name of one; see docs/places.md.",
)
tools_option = click.option(
    "--tools", metavar="LIST", help="Tool names, a profile (default, family), a preset, or none."
)


_PROMPT_OPTIONS = (
    click.option(
        "--system-prompt", "base", metavar="TEXT", help="Replace gong's part of the system prompt."
    ),
    click.option(
        "--system-prompt-file", "base_file", metavar="FILE", help="The same, with a file's text."
    ),
    click.option(
        "--append-system-prompt", "appended", metavar="TEXT", help="Add TEXT to the system prompt."
    ),
)


def add_prompt_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command with the options that `read_prompt_override` takes."""
    for option in reversed(_PROMPT_OPTIONS):
        command = option(command)
    return command


def add_permission_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of permissions; `merge_permissions` takes their values."""
    options = (
        click.option("--permission", metavar="MODE", help=f"Permission mode: {_MODES}."),
        click.option("--yolo", is_flag=True, help="Ask nothing: --permission bypass."),
        click.option(
            "--allow", multiple=True, metavar="RULE", help="Allow calls, as Bash(npm test:*)."
        ),
        click.option(
            "--deny", multiple=True, metavar="RULE", help="Deny calls, whatever allows them."
        ),
        click.option("--add-dir", multiple=True, metavar="PATH", help="Work in this folder, too."),
    )
    for option in reversed(options):
        command = option(command)
    return command


_MODES = "default, plan, accept_edits, dont_ask, bypass or locked"


def merge_permissions(
    settings: PermissionSettings,
    *,
    permission: str | None = None,
    yolo: bool = False,
    allow: tuple[str, ...] = (),
    deny: tuple[str, ...] = (),
    add_dir: tuple[str, ...] = (),
) -> PermissionSettings:
    """Return the settings with those of the command line; raises ConfigurationError.

    Raises UsageError where --yolo contradicts --permission.
    """
    from msgspec.structs import replace  # loads slowly: a prompt stands first

    from ..policy.modes import PermissionMode, parse_mode

    mode = parse_mode(permission) if permission is not None else None
    if yolo and mode not in {None, PermissionMode.BYPASS}:
        raise click.UsageError("--yolo is --permission bypass: give one of them")
    chosen: Any = "bypass" if yolo else mode.value if mode is not None else settings.mode
    return replace(
        settings,
        mode=chosen,
        allow=(*settings.allow, *allow),
        deny=(*settings.deny, *deny),
        folders=(*settings.folders, *map(os.path.abspath, add_dir)),
    )


def load_settings(folder: str | None = None, **flags: Any) -> Settings:
    """Return the settings with these flags; None is a flag that was not given.

    `folder` is where to work, the current one if None. From here on no program that is started
    can read the keys of this process: commands that start any load their settings first.
    """
    from .. import config  # loads slowly: a prompt stands first
    from ..env.own_memory import hide_secrets

    with suppress(FolderGone):
        folder = folder or locate_folder()
    settings = config.load_settings(os.environ, flags, folder)
    hide_secrets(settings.variable_rules)
    return settings


def locate_store(store: str | None) -> Path:
    """Return the folder of the tapes; `store` is the value of --store."""
    from .. import config

    return config.locate_store(load_settings(store=store), os.environ)


def parse_tool_names(option: str | None) -> tuple[str, ...] | None:
    """Return the names of --tools: empty for `none`, None if it was not given.

    Raises UsageError if it contains no name.
    """
    if option is None:
        return None
    if option == "none":
        return ()
    names = tuple(name.strip() for name in option.split(",") if name.strip())
    if not names:
        raise click.UsageError(
            f"--tools {option!r} names no tool: give names separated by commas, a preset, or none"
        )
    return names


def read_prompt_override(
    base: str | None, base_file: str | None, appended: str | None
) -> PromptOverride:
    """Return what --system-prompt, --system-prompt-file and --append-system-prompt set.

    Raises UsageError for two in place of each other, ConfigurationError for a file that cannot be
    read.
    """
    from ..context.system import PromptOverride  # loads slowly

    if base is not None and base_file is not None:
        raise click.UsageError("--system-prompt and --system-prompt-file cannot be combined")
    if base_file is not None:
        try:
            base = Path(base_file).read_bytes().decode()
        except OSError as error:
            raise ConfigurationError(f"{base_file} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ConfigurationError(f"{base_file} is not a text in UTF-8") from error
    return PromptOverride(base, appended or "")


def print_warning(text: str) -> None:
    """Write a line to standard error."""
    terminal.print_warning(text, "gong")


def report_skipped(remark: str) -> None:
    """Warn of a line of a tape that was skipped."""
    print_warning(f"{remark}; `tape verify` shows details")
