"""Where hooks come from: settings, hooks.json, and settings of Claude Code, each with its trust.

    place                                     shape                  takes effect
    ----------------------------------------  ---------------------  --------------------
    config.toml of the user                   `[[hooks]]`            always
    hooks.json beside it                      Claude's               always
    ~/.claude/settings.json                   Claude's, key hooks    always
    hooks of installed plugins                Claude's               always
    .gong/config.toml of the project          `[[hooks]]`            when it is trusted
    .gong/hooks.json                          Claude's               when it is trusted
    .claude/settings.json, settings.local.…   Claude's, key hooks    when it is trusted

They are registered in this order. What cannot be used is left out with a warning that names the
file; nothing here ends a session.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ..env.local import build_child_variables
from ..private_files import locate_config_file
from ..python_objects import load_object
from ..trust import read_project
from .claude import EVENTS, OWN_NAMES
from .command_hook import DEFAULT_SECONDS, CommandHook, HookRule
from .python_hook import PythonHook

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..env.variables import VariablePolicy, VariableRules
    from ..trust import Project
    from .hook import Hook, OnFailure

ENTRY_POINTS = "gong.hooks"
"""The group under which packages register hooks that `python = "NAME"` names."""
_MAX_SECONDS = 600.0
_FIELDS = frozenset((
    "event", "matcher", "command", "args", "if", "timeout", "onFailure",
    "type", "once", "async", "statusMessage", "shell", "python",
))  # fmt: skip
_CAPITALS: dict[str, str] = {name.lower(): name for name in EVENTS}
_FAILURES: dict[object, OnFailure] = {
    "continue": "continue",
    "warn": "continue",
    "block": "block",
}


@dataclass(frozen=True, slots=True)
class ConfiguredHook:
    """A hook in a file, whether it may run or not."""

    event: str
    """Claude's name of the event; "python" for a Python hook, which names its own."""
    matcher: str
    runs: str
    """The command with its arguments, or the Python object."""
    source: str
    """The file."""
    trust: Literal["user", "trusted", "refused", "new"]
    hook: Hook

    @property
    def is_active(self) -> bool:
        """Whether it may run."""
        return self.trust in {"user", "trusted"}


@dataclass(slots=True)
class HookSet:
    """All hooks for one folder, and what is wrong with their files."""

    configured: list[ConfiguredHook] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def list_active(self) -> list[Hook]:
        """Return the hooks that may run, in order."""
        return [hook.hook for hook in self.configured if hook.is_active]

    def leave_out_python(self) -> None:
        """Leave out Python hooks of a project: they would run in gong's process, in no sandbox."""
        theirs = [h for h in self.configured if h.event == "python" and h.trust == "trusted"]
        self.configured = [hook for hook in self.configured if hook not in theirs]
        self.warnings += [
            f"{hook.source}: the Python hook {hook.runs} is left out: it cannot run in the sandbox"
            for hook in theirs
        ]


def load_hooks(
    folder: str,
    environ: Mapping[str, str],
    settings: Sequence[Mapping[str, Any]],
    policy: VariablePolicy | VariableRules = "filter",
) -> HookSet:
    """Return the hooks for a folder; `settings` are those of the user's config.toml.

    Hooks get the variables that `policy` leaves them, as commands do.
    """
    project = read_project(folder, environ)
    loader = _HookLoader(project, environ, policy)
    file = locate_config_file(environ)
    loader.add_rows(settings, str(file), "user")
    loader.add_file(file.with_name("hooks.json"))
    if home := environ.get("HOME"):
        loader.add_file(Path(home) / ".claude/settings.json", key_only=True)
    # The user said yes to the hooks of installed plugins
    if locate_config_file(environ).with_name("plugins").is_dir():
        from ..plugins.installed import list_plugins  # only with plugins

        plugins, warnings = list_plugins(environ)
        loader.found.warnings += warnings
        for plugin in plugins:
            for source, content in plugin.read_hooks():
                loader.add_json(content, source, "user", key_only=False)
    for part in project.parts:
        source = str(project.root / part.path)
        if part.path == ".gong/config.toml":
            loader.add_toml(part.content, source, part.state)
        elif part.kind == "hooks":
            only = part.path.startswith(".claude/")
            loader.add_json(part.content, source, part.state, key_only=only)
    return loader.found


class _HookLoader:
    """Reads one file after the other into a HookSet."""

    def __init__(
        self, project: Project, environ: Mapping[str, str], policy: VariablePolicy | VariableRules
    ) -> None:
        self.found = HookSet()
        self._project = str(project.root)
        self._variables = build_child_variables(environ, policy)

    def add_file(self, file: Path, *, key_only: bool = False) -> None:
        """Read a file of the user's in Claude's shape, if it is there."""
        try:
            data = file.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self._warn(str(file), f"it cannot be read: {error.strerror}")
            return
        self.add_json(data, str(file), "user", key_only=key_only)

    def add_json(self, data: bytes, source: str, trust: Any, *, key_only: bool) -> None:
        """Read hooks in Claude's shape; with `key_only` other settings may be beside them."""
        try:
            value = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeError) as error:
            if not key_only or b'"hooks"' in data:
                self._warn(source, f"it is not JSON: {error}")
            return
        if not isinstance(value, dict):
            self._warn(source, "it is not an object")
            return
        if value.get("disableAllHooks") is True:
            return
        events = value.get("hooks", {} if key_only else value)
        if isinstance(events, list):  # as [[hooks]]
            self.add_rows(events, source, trust)
            return
        if not isinstance(events, dict):
            self._warn(source, "hooks is not an object")
            return
        for event, groups in events.items():
            if self._read_event(event, source) is None:
                continue
            self.add_rows([*_flatten_groups(event, groups)], source, trust)

    def add_toml(self, data: bytes, source: str, trust: Any) -> None:
        """Read `[[hooks]]` of a project's settings."""
        try:
            value = tomllib.loads(data.decode())
        except ValueError as error:
            self._warn(source, f"it is not TOML: {error}")
            return
        self.add_rows(value.get("hooks", []), source, trust)

    def add_rows(self, rows: Any, source: str, trust: Any) -> None:
        """Add hooks, each a table of its fields."""
        if not isinstance(rows, list | tuple):
            self._warn(source, "hooks is not a list: write [[hooks]]")
            return
        for row in rows:
            try:
                hook = self._read_row(row, source, trust)
            except (ValueError, ImportError, AttributeError) as error:
                self._warn(source, str(error))
                continue
            if hook is not None:
                self.found.configured.append(hook)

    def _read_row(self, row: Any, source: str, trust: Any) -> ConfiguredHook | None:
        """Return the hook of a table; ValueError says what is wrong with it."""
        if not isinstance(row, dict):
            raise ValueError("a hook is not a table")  # noqa: TRY004 (said like the rest)
        for key in row.keys() - _FIELDS:
            near = get_close_matches(key, _FIELDS, n=1)
            self._warn(source, f"unknown field {key} of a hook{_suggest_name(near)}")
        if isinstance(python := row.get("python"), str):
            target = _Untrusted() if trust in {"new", "refused"} else _load_object(python)
            return ConfiguredHook("python", "", python, source, trust, PythonHook(target, python))
        event = self._read_event(row.get("event"), source)
        if event is None:
            return None
        kind = row.get("type", "command")
        if kind != "command":
            raise ValueError(f"hooks of type {kind!r} are not run: only type command is")
        rule = replace(_read_rule(event, row, source), is_of_project=trust != "user")
        hook = CommandHook(rule, self._project, self._variables)
        runs = " ".join([rule.command, *(rule.args or ())])
        return ConfiguredHook(event, rule.matcher, runs, source, trust, hook)

    def _read_event(self, name: Any, source: str) -> str | None:
        """Return Claude's name of an event; None, with a warning, if gong has no such event."""
        if not isinstance(name, str):
            raise ValueError("a hook names no event")  # noqa: TRY004 (said like the rest)
        event: str = OWN_NAMES.get(name, name)
        if event in EVENTS:
            return event
        near = get_close_matches(event.lower(), _CAPITALS, n=1)
        similar = [_CAPITALS[name] for name in near]
        self._warn(source, f"unknown hook event {event}{_suggest_name(similar)}")
        return None

    def _warn(self, source: str, text: str) -> None:
        line = f"{source}: {text}"
        if line not in self.found.warnings:
            self.found.warnings.append(line)


def _flatten_groups(event: str, groups: Any) -> Iterator[dict[str, Any]]:
    """Yield the hooks of an event in Claude's shape as tables of all their fields."""
    if not isinstance(groups, list):
        groups = [groups]
    for group in groups:
        inner = group.get("hooks") if isinstance(group, dict) else None
        if not isinstance(inner, list):  # a hook without its group
            yield {"event": event, **group} if isinstance(group, dict) else {"event": event}
            continue
        shared = {"event": event, "matcher": group.get("matcher", "")}
        yield from ({**shared, **hook} if isinstance(hook, dict) else shared for hook in inner)


def _read_rule(event: str, row: Mapping[str, Any], source: str) -> HookRule:
    command, args = row.get("command"), row.get("args")
    if not isinstance(command, str) or not command.strip():
        raise ValueError(f"a hook for {event} has no command")
    if args is not None and not (isinstance(args, list) and all(isinstance(a, str) for a in args)):
        raise ValueError(f"args of a hook for {event} is not a list of texts")
    seconds = row.get("timeout", DEFAULT_SECONDS)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        raise ValueError(f"timeout of a hook for {event} is not a number of seconds")
    failure = row.get("onFailure", "continue")
    if failure not in _FAILURES:
        raise ValueError(f"onFailure of a hook for {event} is {failure!r}: use warn or block")
    texts = {key: row.get(key) or "" for key in ("matcher", "if")}
    for key, text in texts.items():
        if not isinstance(text, str):
            raise ValueError(f"{key} of a hook for {event} is not a text")  # noqa: TRY004 (as above)
    return HookRule(
        event=event,
        command=command,
        source=source,
        args=None if args is None else tuple(args),
        matcher=texts["matcher"],
        condition=texts["if"],
        timeout=min(float(seconds), _MAX_SECONDS),
        on_failure=_FAILURES[failure],
        once=row.get("once") is True,
        background=row.get("async") is True,
    )


def _suggest_name(near: Sequence[str]) -> str:
    return f": did you mean {near[0]}?" if near else ""


class _Untrusted:
    """Stands for a Python hook that is not trusted: nothing of it is imported."""


def _load_object(name: str) -> object:
    """Return the hook that a name refers to (`load_object`); a class is made an instance."""
    target = load_object(name, ENTRY_POINTS)
    return target() if isinstance(target, type) else target
