"""The open question about a call: which keys answer it, and what the next text means.

    state      begins with       keys                         Enter
    ---------  ----------------  ---------------------------  ----------------------------
    deaf       the question      are typed into the prompt    as without a question
    waits      0.4 s later       1, 2, 3 answer; 4, e below   as without a question
    refusing   4                 are typed                    no, with the text as reason
    editing    e                 are typed                    asks again, about the edited call

A question takes no key while words are in the prompt, other than those typed while it was deaf.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition

from tape.text import clean_words

from ..draw.approval_panel import format_editable, parse_edited
from ..draw.lines import render_remark

if TYPE_CHECKING:
    from collections.abc import Callable

    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.key_binding import KeyBindings

    from ...agent.events import ApprovalRequested
    from ...agent.session import Session
    from ...policy.approval import Answer
    from ..draw.terminal import Terminal

_ANSWER_KEYS: dict[str, Answer] = {
    "1": "once",
    "2": "session",
    "3": "always",
    "4": "no",
    "e": "edit",
}
_DEAF_SECONDS = 0.4
"""A question takes no key so long: one typed for the prompt must not answer it."""


class OpenQuestion:
    """The question about a call that waits for a person, if there is one."""

    def __init__(
        self,
        session: Session,
        terminal: Callable[[], Terminal],
        clock: Callable[[], float],
    ) -> None:
        """`terminal` returns where the answer is typed; the session gets it."""
        self._session, self._terminal, self._clock = session, terminal, clock
        self._event: ApprovalRequested | None = None
        self._opened_at = 0.0
        self._is_refusing = self._is_editing = False
        self._early_words = ""
        """What was typed before the question took keys, into a prompt that was empty."""
        self._is_typing_early = False
        """Whether what is typed now is such words."""
        self._words_aside = ""
        """Such words, while the answer is typed in the prompt."""

    @property
    def _draft(self) -> Buffer:
        return self._terminal().draft

    def open(self, event: ApprovalRequested) -> None:
        """Begin to wait for the answer to a question."""
        self._event, self._opened_at = event, self._clock()
        self._early_words, self._is_typing_early = "", not self._draft.text

    def forget(self) -> None:
        """Forget the question of the run that ends; one of a background sub-agent stays open."""
        if self._event is None or not self._event.agent:
            self._event, self._is_refusing, self._is_editing = None, False, False

    def add_keys(self, keys: KeyBindings) -> None:
        """Bind the keys that answer."""
        for key, decision in _ANSWER_KEYS.items():
            condition = Condition(partial(self._may_answer, decision))
            keys.add(key, filter=condition)(lambda _, decision=decision: self._answer(decision))

    def take_text(self, text: str) -> bool:
        """Take an entered text that belongs to the answer; return whether it does."""
        if self._is_refusing:
            self._send("no", clean_words(text).strip())
        elif self._is_editing:
            self._send_edited(clean_words(text))
        else:
            return False
        return True

    def note_early_words(self) -> None:
        """Note what stands in the prompt when the question begins to take keys."""
        if self._is_typing_early and not self._is_deaf():
            self._early_words, self._is_typing_early = self._draft.text, False

    def describe_state(self) -> str:
        """Return what is awaited, for the status line; empty without a question."""
        if self._event is None or self._is_deaf():
            return ""
        if self._is_refusing:
            return "reason, then Enter"
        if self._is_editing:
            return "edit, then Enter"
        if not self._has_only_early_words():
            return "waits: empty the prompt, then 1 to 4 or e"
        return "waits for 1 to 4 or e"

    def _may_answer(self, decision: Answer) -> bool:
        """Whether a key answers now; a lasting answer needs a rule that is offered."""
        if self._event is None or self._is_refusing or self._is_editing:
            return False
        offers = bool(self._event.offered) or decision in {"once", "no", "edit"}
        return offers and not self._is_deaf() and self._has_only_early_words()

    def _is_deaf(self) -> bool:
        return self._clock() - self._opened_at < _DEAF_SECONDS

    def _has_only_early_words(self) -> bool:
        """Whether nothing was typed into the prompt since the question takes keys."""
        self.note_early_words()
        return self._draft.text in {"", self._early_words}

    def _answer(self, decision: Answer) -> None:
        """Answer the question; a refusal waits for its reason.

        Of what was typed too early, keys that would have answered are dropped, and words stay.
        """
        words = self._draft.text
        self._early_words, self._is_typing_early = "", False
        self._words_aside = "" if _ANSWER_KEYS.keys() >= {*words} else words
        self._draft.reset()
        if decision == "no":
            self._is_refusing = True
        elif decision == "edit" and self._event is not None:
            self._is_editing = True
            self._draft.insert_text(format_editable(self._event))
        else:
            self._send(decision)

    def _send(
        self, decision: Answer, reason: str = "", arguments: dict[str, Any] | None = None
    ) -> None:
        event, self._event, self._is_refusing = self._event, None, False
        if self._words_aside:
            asyncio.get_running_loop().call_soon(self._restore_words, self._words_aside)
            self._words_aside = ""
        if event is not None:
            answer = f"{decision}: {reason}" if reason else decision
            self._terminal().print([render_remark(f"answered {answer}")])
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
