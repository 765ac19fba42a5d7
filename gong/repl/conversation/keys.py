"""Which keys do what in a conversation, and which were pressed twice.

key                      first                          again within
-----------------------  -----------------------------  ------------------------------------
Ctrl+C                   stops the run or clears the    2 s: quits
                         line
Esc, while nothing runs  –                              1 s: back to an earlier prompt
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_completions, has_focus, is_searching
from prompt_toolkit.key_binding import KeyBindings

from .first_prompt import TWICE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.filters import FilterOrBool

    from ..typing.prompt_input import PromptInput
    from .open_question import OpenQuestion


class RepeatedKeys:
    """When Ctrl+C and Esc were pressed last."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._interrupted_at = self._armed_at = -TWICE_SECONDS
        """When Ctrl+C was the last key; and its value before the current key."""
        self._escaped_at = -TWICE_SECONDS

    def note_key(self) -> None:
        """Note that a key is pressed, before its own action runs."""
        self._armed_at, self._interrupted_at = self._interrupted_at, -TWICE_SECONDS

    def note_interrupt(self) -> bool:
        """Note Ctrl+C; return whether it is the second in a row."""
        now, before = self._clock(), max(self._armed_at, self._interrupted_at)
        self._interrupted_at = now
        return now - before < TWICE_SECONDS

    def note_escape(self) -> bool:
        """Note Esc while nothing runs; return whether it is the second.

        A binding of two keys would not do: a lone Esc is only known as one after a while, and the
        first of two is handled by itself by then.
        """
        now, before = self._clock(), self._escaped_at
        is_second = now - before < TWICE_SECONDS / 2
        self._escaped_at = -TWICE_SECONDS if is_second else now
        return is_second

    @property
    def may_quit(self) -> bool:
        """Whether Ctrl+C would quit now."""
        return self._clock() - self._interrupted_at < TWICE_SECONDS

    @property
    def may_have_quit(self) -> bool:
        """Whether it would have a second ago: what says so is to be drawn over."""
        return self._clock() - self._interrupted_at < TWICE_SECONDS + 1


def bind_keys(
    typing: PromptInput,
    question: OpenQuestion,
    draft: Callable[[], Buffer],
    is_busy: Callable[[], bool],
    may_take_back: Callable[[], bool],
    actions: Mapping[str, Callable[[], object]],
) -> KeyBindings:
    """Return the bindings of a conversation.

    `actions` are functions by the names of `typing.keys.ACTIONS`, and for `interrupt_program`
    (Ctrl+C) and `escape` (Esc while nothing runs). `may_take_back` says whether Up takes queued
    words back.
    """
    keys = KeyBindings()
    busy, no_search = Condition(is_busy), ~is_searching

    def bind_key(key: str, action: str, condition: FilterOrBool = True) -> None:
        keys.add(key, filter=condition)(lambda _: actions[action]())

    bind_key("c-c", "interrupt_program", no_search)
    bind_key("<sigint>", "interrupt_program")
    bind_key("escape", "escape", ~busy & no_search)
    bind_key("up", "take_back", Condition(may_take_back) & no_search)
    conditions: dict[str, FilterOrBool] = {
        "stop": busy & no_search,
        "take_back": True,
        "follow_up": True,
        "interrupt": no_search,
        "mode": ~has_completions,
        "expand": no_search,
        "thinking": no_search,
    }
    for action, condition in conditions.items():
        typing.bind_action(keys, action, actions[action], condition)
    typing.bind_action(keys, "newline", lambda: draft().insert_text("\n"), no_search)
    typing.add_keys(keys)
    question.add_keys(keys)

    def is_escaped() -> bool:
        return draft().document.text_before_cursor.endswith("\\")

    @keys.add("enter", filter=Condition(is_escaped) & has_focus(DEFAULT_BUFFER))
    def break_line(_: object) -> None:
        """Replace the backslash before Enter by a new line."""
        draft().delete_before_cursor()
        draft().insert_text("\n")

    return keys
