"""What keys do, and `[keys]` in config.toml, which gives them to other actions.

    [keys]
    editor = "ctrl+e"                  # instead of ctrl+g
    submit = ["ctrl+x", "f5"]          # Enter is a new line then

A key is written as it is said: ctrl+g, alt+enter, shift+tab, f5, up. Ctrl+C cannot be changed.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from ...errors import ConfigurationError
from .keyboard import SHIFT_ENTER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class InputAction(NamedTuple):
    """Something that keys do."""

    keys: tuple[str, ...]
    """Its keys where the settings name no others."""
    about: str


ACTIONS = {
    "submit": InputAction(("enter",), "send; while the agent works: steer it"),
    "follow_up": InputAction(("alt+enter",), "queue a follow-up for when the agent is done"),
    "interrupt": InputAction(("ctrl+s",), "stop the tool that runs, and steer"),
    "mode": InputAction(("shift+tab",), "next permission mode"),
    "newline": InputAction(("ctrl+j", "shift+enter"), "new line; also \\ and Enter"),
    "history": InputAction(("ctrl+r",), "search the prompts of the project; or Up"),
    "take_back": InputAction(("alt+up",), "return the newest queued message here"),
    "editor": InputAction(("ctrl+g",), "write the prompt in $VISUAL or $EDITOR"),
    "paste_image": InputAction(("ctrl+v",), "attach the picture in the clipboard"),
    "model": InputAction(("ctrl+p",), "choose another model"),
    "expand": InputAction(("ctrl+o",), "show the newest shortened result in full"),
    "thinking": InputAction(("ctrl+t",), "show or hide thinking"),
    "stop": InputAction(("esc",), "stop the agent; your draft is kept"),
    "quit": InputAction(("ctrl+d",), "quit, on an empty line"),
    "suspend": InputAction(("ctrl+z",), "suspend gong; fg in the shell resumes it"),
}
"""What keys do, by the name in [keys]."""

FIXED_KEYS = (
    ("esc twice", "go back to an earlier prompt (/rewind)"),
    ("ctrl+c", "stop, or clear the line; twice: quit"),
    ("tab", "complete a command, its argument, or @file"),
    ("! at the start", "run in the shell; !! also shows the model"),
)
"""Keys that stay as they are."""

_NAMES = {
    **{name: name for name in ("enter", "tab", "up", "down", "left", "right", "home", "end")},
    **{name: name for name in ("pageup", "pagedown", "insert", "delete", "backspace", "space")},
    **{f"f{number}": f"f{number}" for number in range(1, 25)},
    "esc": "escape",
    "escape": "escape",
}
_MOVING = frozenset({"up", "down", "left", "right", "home", "end", "insert", "delete"})
_CTRL_CHARACTERS = "abdefghjklnopqrstuvwxyz\\]^_@"
"""What Ctrl makes keys of; not c, and not i and m, which are Tab and Enter."""


class KeyMap:
    """Which keys do what, with the user's settings."""

    def __init__(self, settings: Mapping[str, str | Sequence[str]]) -> None:
        """Raise ConfigurationError for an action or a key that there is not, or one key twice."""
        own_keys = {name: _read_keys(name, keys) for name, keys in settings.items()}
        self.names: dict[str, tuple[str, ...]] = {}
        """The keys of each action as they are written."""
        taken = {parse_key(key): name for name, keys in own_keys.items() for key in keys}
        for name, keys in own_keys.items():
            for key in keys:
                if (other := taken[parse_key(key)]) != name:
                    raise ConfigurationError(f"[keys]: {key} is set for {other} and for {name}")
        for name, action in ACTIONS.items():
            # A key that the settings give to one action no longer does another.
            left = tuple(key for key in action.keys if parse_key(key) not in taken)
            self.names[name] = own_keys.get(name, left)
        self.changed = frozenset(name for name in ACTIONS if self.names[name] != ACTIONS[name].keys)
        """Actions with other keys than those they have by themselves."""

    def list_keys(self, action: str) -> list[tuple[str, ...]]:
        """Return the keys of an action as prompt-toolkit names them."""
        return [parse_key(key) for key in self.names[action]]

    def list_unused_keys(self, action: str) -> list[tuple[str, ...]]:
        """Return the keys that did an action and now do nothing."""
        used = {parse_key(key) for keys in self.names.values() for key in keys}
        return [parsed for key in ACTIONS[action].keys if (parsed := parse_key(key)) not in used]

    def render_keys(self) -> str:
        """Return what each key does, one line each; changed ones are marked with a star."""
        rows = [
            (f"{', '.join(self.names[name]) or '–'}{' *' if name in self.changed else ''}", name)
            for name in ACTIONS
        ]
        lines = [f"{keys:<21}{name:<12}{ACTIONS[name].about}" for keys, name in rows]
        lines += [f"{keys:<33}{about}" for keys, about in FIXED_KEYS]
        advice = 'change them with [keys] in config.toml: NAME = KEY, such as editor = "ctrl+e"'
        return "\n".join([*lines, f"* changed; {advice}" if self.changed else advice])


def _read_keys(name: str, keys: str | Sequence[str]) -> tuple[str, ...]:
    if name not in ACTIONS:
        near = get_close_matches(name, ACTIONS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"they are {', '.join(ACTIONS)}"
        raise ConfigurationError(f"[keys]: there is no action {name}: {hint}")
    return (keys,) if isinstance(keys, str) else tuple(keys)


def parse_key(text: str) -> tuple[str, ...]:
    """Return the names that prompt-toolkit has for a key such as alt+enter.

    Raises ConfigurationError for a key that terminals do not send, and for Ctrl+C.
    """
    *held, base = text.lower().replace(" ", "").split("+")
    unknown = [modifier for modifier in held if modifier not in {"ctrl", "alt", "shift"}]
    name = _NAMES.get(base, base if len(base) == 1 else "")
    if unknown or not name:
        wrong = unknown[0] if unknown else base
        near = get_close_matches(wrong, (*_NAMES, "ctrl", "alt", "shift"), n=1)
        hint = f": did you mean {text.lower().replace(wrong, near[0])}?" if near else ""
        raise ConfigurationError(f"[keys]: there is no key {text}{hint}")
    key = _hold_key(name, frozenset(held) - {"alt"})
    if key is None or (not held and len(name) == 1):
        raise ConfigurationError(
            f"[keys]: {text} cannot be a key of an action: take one such as ctrl+e, alt+e or f5"
        )
    return ("escape", key) if "alt" in held else (key,)


def _hold_key(name: str, held: frozenset[str]) -> str | None:
    """Return a key with Ctrl or Shift held; None where terminals send no such key."""
    if not held:
        return " " if name == "space" else name
    if held == {"ctrl"}:
        if name in _CTRL_CHARACTERS:
            return f"c-{name}"
        return "c-@" if name == "space" else f"c-{name}" if name in _MOVING else None
    if held == {"shift"}:
        if name == "enter":
            return SHIFT_ENTER
        return f"s-{name}" if name in _MOVING or name == "tab" else None
    return f"c-s-{name}" if name in _MOVING else None
