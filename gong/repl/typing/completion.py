"""What Tab and the first letters after `/` and `@` offer.

    typed          offered
    -------------  ------------------------------------------------------------
    /, /mo         commands and skills, with what they do
    /model son     models; /effort, /mode, /plan: their words
    /switch tr     branches of this session; /resume: sessions
    look at @scr   files and folders of the working folder, in any order of use

The menu opens by itself only for a command or a file. All is looked up in a thread, so that no key
waits for it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cached_property
from itertools import islice
from time import sleep
from typing import TYPE_CHECKING, get_args

from prompt_toolkit.completion import Completer, Completion, ThreadedCompleter

from tape.errors import TapeError
from tape.places.checkout import find_checkout
from tape.text import show_controls

from ...credentials import Credentials
from ...env.wrappers import find_folder_here, is_place
from ...errors import GongError
from ...llm.models import EffortChoice
from ...llm.provider_factory import is_configured
from ...policy.modes import MODE_NOTES, PermissionMode
from ...tools.registry import TOOL_PRESETS
from ..commands.session_lists import list_branches, list_sessions
from ..commands.skill import list_skill_commands
from ..draw.styles import THEMES
from ..mention_grammar import ARGUMENT_BEGIN, COMMAND_BEGIN, MENTION_BEGIN
from .file_names import FolderNames, find_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from tape.index.tape_filter import Checkout

    from ...assembly.open_session import OpenSession
    from ...llm.models import ModelInfo

MAX_OFFERED = 50
_PAUSE_SECONDS = 0.02
"""Files are looked up this long after a key, once it is on the screen."""
_META_CHARS = 60
_LEAVING = frozenset({"exit", "quit"})
_NEW_NAMES = frozenset({"fork", "image", "add-dir"})
"""Commands whose argument may be new, or a path: it is completed by Tab only."""


_EFFORT_NOTES = {
    "none": "as the model decides",
    "low": "think little: quick and cheap",
    "medium": "think where it helps",
    "high": "think hard",
    "xhigh": "think as hard as the model can",
}
_MODE_NOTES = {str(mode): note for mode, note in MODE_NOTES.items()}
_WORD_NOTES: dict[str, dict[str, str]] = {
    **dict.fromkeys(("effort", "thinking"), _EFFORT_NOTES),
    **dict.fromkeys(("mode", "permissions"), _MODE_NOTES),
    "plan": {"on": _MODE_NOTES["plan"], "off": "back to the mode before"},
}
"""Command → what the words of its argument mean."""


class InputCompleter(Completer):
    """Completions of commands, their arguments, and files."""

    def __init__(
        self,
        host: OpenSession,
        list_files: Callable[[], Sequence[str]],
        commands: Mapping[str, tuple[str, str]],
    ) -> None:
        """`commands` is the argument of each command, and what it does."""
        self._host, self._commands = host, commands
        self._files = FolderNames(list_files)

    @cached_property
    def _checkout(self) -> Checkout:
        environ = self._host.models.environ
        return find_checkout(find_folder_here(self._host.session.setup.env), environ)

    def get_completions(
        self,
        document: Document,
        complete_event: CompleteEvent,
    ) -> Iterator[Completion]:
        """Yield what fits the text before the cursor, best first."""
        text = document.text_before_cursor
        if match := MENTION_BEGIN.search(text):
            yield from self._complete_file(match["path"])
        elif match := COMMAND_BEGIN.match(text):
            yield from self._complete_command(match["name"])
        elif (match := ARGUMENT_BEGIN.match(text)) and (
            complete_event.completion_requested or match["name"] not in _NEW_NAMES
        ):
            with suppress(GongError, TapeError, OSError):  # the command says what is wrong
                yield from self._complete_argument(match["name"], match["argument"])

    def _complete_command(self, typed: str) -> Iterator[Completion]:
        commands = {**list_skill_commands(self._host, self._commands), **self._commands}
        names = find_names(commands, typed, len(commands)) if typed else sorted(commands)
        for name in sorted(names, key=_LEAVING.__contains__):  # never chosen by chance
            argument, about = commands[name]
            yield Completion(
                f"{name} " if argument else name,
                -len(typed),
                display=f"/{name} {argument}".rstrip(),
                display_meta=about,
            )

    def _complete_file(self, typed: str) -> Iterator[Completion]:
        typed_path = typed.removeprefix('"')
        sleep(_PAUSE_SECONDS)
        for name in find_names(self._files.list_names(), typed_path, MAX_OFFERED, rests=True):
            spaced = re.search(r"\s", name) is not None
            text = f'"{name}"' if spaced else name
            yield Completion(text, -len(typed), display=show_controls(name))

    def _complete_argument(self, name: str, typed: str) -> Iterator[Completion]:
        words: Iterable[str]
        if name in {"switch", "fork"}:
            recorder = self._host.session.recorder
            words = (
                []
                if recorder is None
                else [row.value for row in list_branches(recorder.tape, recorder.branch, "")]
            )
        elif name == "resume":
            home = self._host.library.store.tapes.parent
            for row in list_sessions(home, self._checkout, typed)[:MAX_OFFERED]:
                about = f"{row.text[:_META_CHARS]}  {row.note}"
                yield Completion(row.value, -len(typed), display_meta=show_controls(about))
            return
        elif name in {"model", "handoff"}:
            yield from self._complete_model(typed)
            return
        elif name in {"image", "add-dir"}:
            is_here = not is_place(self._host.session.setup.env)
            words = self._files.list_names() if is_here else ()  # of this machine
        else:
            words = self._list_words(name)
        notes = _WORD_NOTES.get(name, {})
        for word in find_names(words, typed, MAX_OFFERED) if typed else islice(words, MAX_OFFERED):
            note = notes.get(word, "")
            yield Completion(word, -len(typed), display=show_controls(word), display_meta=note)

    def _complete_model(self, typed: str) -> Iterator[Completion]:
        """Yield models by provider with window and price, those that have a key first."""
        models = self._host.models
        about = dict(models.settings.aliases)
        ready = self._ready_providers
        infos = models.names.catalogue.list_models()
        for info in sorted(infos, key=lambda info: (info.provider not in ready, info.provider)):
            about[info.id] = _describe_model(info, has_key=info.provider in ready)
        matches = find_names(about, typed, MAX_OFFERED)
        order = {name: place for place, name in enumerate(about)}
        for name in sorted(matches, key=lambda name: (not _has_word(name, typed), order[name])):
            yield Completion(name, -len(typed), display_meta=about[name])

    @cached_property
    def _ready_providers(self) -> frozenset[str]:
        """The providers that have a key, or are configured on this machine."""
        models = self._host.models
        keys, presets = Credentials.from_environ(models.environ), models.names.presets
        return frozenset(
            name
            for name, preset in presets.items()
            if is_configured(
                preset, models.environ, has_key=keys.has_key(preset.key_name, preset.keys)
            )
        )

    def _list_words(self, name: str) -> Iterable[str]:
        match name:
            case "theme":
                return THEMES
            case "effort" | "thinking":
                return get_args(EffortChoice)
            case "mode" | "permissions":
                return [*PermissionMode]
            case "plan" | "tools":
                tools = [*TOOL_PRESETS, *self._host.session.setup.tools.names]
                return tools if name == "tools" else ["on", "off"]
        return []


def _has_word(name: str, typed: str) -> bool:
    """Return whether a word of a name begins as typed: "op" of claude-opus, not of anthropic."""
    return any(word.startswith(typed.casefold()) for word in re.split(r"[/_.-]", name.casefold()))


def _describe_model(info: ModelInfo, *, has_key: bool) -> str:
    """Return window and price of a model, in USD per million tokens of input and output."""
    parts = [] if has_key else ["no key"]
    if info.context_window:
        parts.append(f"{info.context_window // 1_000:,}k")
    if info.price is not None:
        parts.append(f"${info.price.input:g} / ${info.price.output:g}")
    return " · ".join(parts)


def build_completer(
    host: OpenSession,
    list_files: Callable[[], Sequence[str]],
    commands: Mapping[str, tuple[str, str]],
) -> Completer:
    """Return the completer of a session, which works in threads; `list_files` blocks."""
    return ThreadedCompleter(InputCompleter(host, list_files, commands))
