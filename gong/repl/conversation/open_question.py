"""The open question about a call: which keys answer it, and what the next text means.

    state      begins with          keys                              Enter
    ---------  -------------------  --------------------------------  -----------------------
    deaf       the question         are typed into the prompt         as without a question
    waits      0.4 s without a key  numbers, y, n, e, Esc, arrows     the answer at the cursor
    refusing   4, the cursor at no  are typed; ↑ ↓ move, Esc is no    no, with the text as reason
    editing    e                    are typed; Esc goes back          asks again, about the edited
                                                                      call

With words in the prompt only Esc answers, and numbers where the words were typed while the question
was deaf: Enter sends them, as without a question.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, has_completions

from tape.text import clean_words

from ..draw.approval_panel import (
    ANSWER_DIGITS,
    ANSWER_LETTERS,
    build_answers,
    format_editable,
    parse_edited,
)
from ..draw.choice_list import ChoiceList
from ..draw.lines import render_remark

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    from ...agent.events import ApprovalRequested
    from ...agent.session import Session
    from ...policy.approval import Answer
    from ..draw.lines import StyledLine
    from ..draw.screen import Screen
    from ..draw.terminal import Terminal

    State = Literal["none", "deaf", "waits", "refusing", "editing"]

_NO_CHOICES = ChoiceList(())
_MOVES = {"up": -1, "left": -1, "down": 1, "right": 1}
_DEAF_SECONDS = 0.4
"""A question takes no key so long: one typed for the prompt must not answer it."""


class OpenQuestion:
    """The question about a call that waits for a person, if there is one."""

    def __init__(
        self,
        session: Session,
        terminal: Callable[[], Terminal],
        screen: Screen,
        clock: Callable[[], float],
    ) -> None:
        """`terminal` returns where the answer is typed; the session gets it."""
        self._session, self._terminal, self._screen, self._clock = session, terminal, screen, clock
        self._event: ApprovalRequested | None = None
        self._answers = _NO_CHOICES
        self._opened_at = 0.0
        self._is_editing = False
        self._early_words = ""
        """What was typed before the question took keys, into a prompt that was empty."""
        self._is_typing_early = False
        """Whether what is typed now is such words."""
        self._words_aside = ""
        """Such words, while the answer is typed in the prompt."""

    @property
    def _draft(self) -> Buffer:
        return self._terminal().draft

    @property
    def is_open(self) -> bool:
        """Whether a person is asked."""
        return self._event is not None

    @property
    def _state(self) -> State:
        if self._event is None:
            return "none"
        if self._is_editing:
            return "editing"
        if self._is_deaf():
            return "deaf"
        return "refusing" if self._answers.current.value == "no" else "waits"

    def open(self, event: ApprovalRequested) -> None:
        """Begin to wait for the answer to a question."""
        self._event, self._opened_at = event, self._clock()
        folder = self._session.setup.env.working_directory
        self._answers, self._is_editing = build_answers(event, folder), False
        self._early_words, self._is_typing_early = "", not self._draft.text

    def forget(self) -> None:
        """Forget the question of the run that ends; one of a background sub-agent stays open."""
        if self._event is None or not self._event.agent:
            self._event, self._is_editing = None, False

    def render(self, columns: int) -> list[StyledLine]:
        """Return the call that is asked about and the answers; nothing without a question."""
        if self._event is None:
            return []
        call = self._screen.render_question(columns)
        if self._is_editing or not call:  # not shown yet
            return call
        return [*call, *self._answers.render(columns)]

    def add_keys(self, keys: KeyBindings) -> None:
        """Bind the keys that answer."""
        for key in ANSWER_DIGITS:
            keys.add(key, filter=Condition(self._may_take_number))(self._choose_key)
        is_free = Condition(lambda: self._state == "waits" and not self._draft.text)
        for key in ANSWER_LETTERS:
            keys.add(key, filter=is_free)(self._choose_key)
        is_walking = Condition(
            lambda: self._state in {"waits", "refusing"} and not self._draft.text
        )
        for key, by in _MOVES.items():
            keys.add(key, filter=is_walking & ~has_completions)(lambda _, by=by: self._move(by))
        keys.add("enter", filter=is_free)(lambda _: self._choose(self._answers.current.value))
        takes_escape = Condition(lambda: self._state in {"waits", "refusing", "editing"})
        keys.add("escape", filter=takes_escape)(lambda _: self._escape())

    def take_text(self, text: str) -> bool:
        """Take an entered text that belongs to the answer; return whether it does."""
        match self._state:
            case "refusing":
                self._send("no", clean_words(text).strip())
            case "editing":
                self._send_edited(clean_words(text))
            case _:
                return False
        return True

    def note_key(self) -> None:
        """Note that a key is pressed: while keys follow each other the question stays deaf."""
        if self._is_deaf():
            self._opened_at = self._clock()
        self.note_early_words()

    def note_early_words(self) -> None:
        """Note what is in the prompt when the question begins to take keys."""
        if self._is_typing_early and not self._is_deaf():
            self._early_words, self._is_typing_early = self._draft.text, False

    def describe_state(self) -> str:
        """Return what is awaited, for the status line; empty without a question."""
        match self._state:
            case "refusing":
                return "a reason or nothing, then Enter"
            case "editing":
                return "edit, then Enter · Esc goes back"
            case "waits" if not self._has_only_early_words():
                return "waits: empty the prompt, then answer"
            case "waits":
                return "waits for your answer"
            case "deaf":
                return "a question"
            case _:
                return ""

    def _move(self, by: int) -> None:
        self._answers.move(by)

    def _may_take_number(self) -> bool:
        """Whether a number answers now: typed-on words take it, those typed too early do not."""
        return self._state == "waits" and self._has_only_early_words()

    def _is_deaf(self) -> bool:
        return self._event is not None and self._clock() - self._opened_at < _DEAF_SECONDS

    def _has_only_early_words(self) -> bool:
        """Whether nothing was typed into the prompt since the question takes keys."""
        self.note_early_words()
        return self._draft.text in {"", self._early_words}

    def _choose_key(self, event: KeyPressEvent) -> None:
        """Choose the answer of a number or letter; others change nothing."""
        key = event.data
        if (choice := self._answers.find(key)) is None:
            return
        if key == choice.letter or choice.value != "no":
            self._choose(choice.value)
        else:
            self._put_words_aside()
            self._answers.move_to("no")

    def _choose(self, value: str) -> None:
        """Answer the question, or put the call into the prompt for an edit."""
        self._put_words_aside()
        if value != "edit":
            self._send(cast("Answer", value))
        elif self._event is not None:
            self._is_editing = True
            self._draft.insert_text(format_editable(self._event))

    def _escape(self) -> None:
        """Refuse the call; while it is edited, go back to the question."""
        if self._is_editing:
            self._is_editing = False
            self._draft.reset()
            return
        if self._state == "refusing":
            self._draft.reset()
        self._send("no")

    def _put_words_aside(self) -> None:
        """Empty the prompt: of what was typed too early, words come back after the answer."""
        words = self._draft.text
        self._early_words, self._is_typing_early = "", False
        if words:
            self._words_aside = "" if {*ANSWER_DIGITS, *ANSWER_LETTERS} >= {*words} else words
        self._draft.reset()

    def _send(
        self, decision: Answer, reason: str = "", arguments: dict[str, Any] | None = None
    ) -> None:
        event, self._event = self._event, None
        if self._words_aside:
            asyncio.get_running_loop().call_soon(self._restore_words, self._words_aside)
            self._words_aside = ""
        if event is not None:
            self._terminal().print(self._screen.close_question(event, decision, reason, arguments))
            self._session.answer_approval(event.call_id, decision, reason, arguments=arguments)

    def _restore_words(self, words: str) -> None:
        """Put words that were typed too early back into the prompt, before what is there."""
        draft = self._draft
        draft.set_document(Document(f"{words}{draft.text}", len(words)))

    def _send_edited(self, text: str) -> None:
        """Ask about the call as it was edited; an empty line leaves it as it is."""
        self._is_editing = False
        if self._event is None or not text.strip():
            return
        try:
            arguments = parse_edited(self._event, text)
        except ValueError as error:
            self._terminal().print([render_remark(f"not edited: {error}", "error")])
            return
        self._send("edit", arguments=arguments)
