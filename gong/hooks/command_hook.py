"""Hooks that are commands: JSON on standard input, the answer on standard output.

    exit code   what it means
    ---------   -------------------------------------------------------------------------
    0           standard output is the answer: a JSON object, or nothing; at input and
                session_start any other text is context for the model. A text that has fields of
                an answer but is none is reported
    2           block: standard error is the reason, and the model reads it
    other       a failure: reported, and the run continues, unless onFailure is "block"

Input and output are files without a name, so neither a hook that reads nothing nor a child that it
leaves in the background can hold up the run.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import IO, TYPE_CHECKING, Any

import msgspec

from . import claude
from .hook import GATES, NO_ANSWER, HookAnswer, HookCall, HookFailed, OnFailure, UnreadableDecision
from .matching import HookCondition, HookMatcher

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..env.sandbox.sandbox import Sandbox
    from .hook import Point

DEFAULT_SECONDS = 30.0
"""How long a command may take if it does not say."""
BLOCKING_EXIT = 2
_CLOSE_SECONDS = 5.0
_MAX_OUTPUT_BYTES = 1 << 20
_MAX_SHOWN_CHARS = 300
_CONTEXT_POINTS: frozenset[Point] = frozenset({"input", "session_start"})
_TOOL_POINTS: frozenset[Point] = frozenset({"tool_call", "permission", "tool_result"})
_NAME_CHARS = 60
_NOT_STARTED = re.compile(
    r"can't open|cannot open|can't find|cannot find|no such file|not found|permission denied",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class HookRule:
    """One command hook as it was configured."""

    event: str
    command: str
    source: str
    """The file that names it."""
    args: tuple[str, ...] | None = None
    """If given, the command is a program that gets these arguments, without a shell."""
    matcher: str = ""
    condition: str = ""
    """The rule in `if`; empty for none."""
    timeout: float = DEFAULT_SECONDS
    on_failure: OnFailure = "continue"
    once: bool = False
    """Whether it runs only the first time in a session."""
    background: bool = False
    """Whether nobody waits for its answer."""
    is_of_project: bool = False
    """Whether a project brings it: then it runs inside the session's sandbox."""


class CommandHook:
    """A command hook of one session; raises ValueError for a matcher or condition that is none."""

    def __init__(self, rule: HookRule, project: str, variables: Mapping[str, str]) -> None:
        self.rule = rule
        self.timeout, self.on_failure = rule.timeout, rule.on_failure
        self._meaning = claude.EVENTS[rule.event]
        self._matcher = HookMatcher(rule.matcher)
        self._condition = HookCondition(rule.condition) if rule.condition else None
        self._project, self._variables = project, variables
        self._is_done = False
        self.sandbox: Sandbox | None = None
        """The sandbox that it runs in, if there is one."""
        self.report_late: Callable[[CommandHook, Point, Exception], None] | None = None
        """Called with a failure in the background; the first dispatcher sets it."""
        self._background: set[asyncio.Task[HookAnswer]] = set()

    @property
    def name(self) -> str:
        """The event and the command, shortened."""
        words = " ".join([self.rule.command, *(self.rule.args or ())]).split()
        text = " ".join(words)
        cut = text if len(text) <= _NAME_CHARS else f"{text[: _NAME_CHARS - 1]}…"
        return f"{self.rule.event} {cut}"

    def wants(self, point: Point) -> bool:
        """Return whether its event is at this point."""
        return point == self._meaning.point

    def handles(self, call: HookCall) -> bool:
        """Return whether it wants this call."""
        if call.point != self._meaning.point or (self.rule.once and self._is_done):
            return False
        if not claude.is_meant(self.rule.event, call) or self._find_name(call) is None:
            return False
        if self._condition is None:
            return True
        if call.point not in _TOOL_POINTS:
            return False
        return self._condition.is_met(call.value["tool"], call.value["args"], call.facts.cwd)

    async def answer(self, call: HookCall) -> HookAnswer:
        """Run the command; raises HookFailed if it could not be run or its answer not be read."""
        self._is_done = True
        work = self._run(call)
        if not self.rule.background:
            return await work
        task = asyncio.create_task(asyncio.wait_for(work, self.timeout))
        self._background.add(task)
        task.add_done_callback(partial(self._end_background, call.point))
        return NO_ANSWER

    async def close(self) -> None:
        """Wait a moment for what runs in the background, and end the rest."""
        if not self._background:
            return
        await asyncio.wait(self._background, timeout=_CLOSE_SECONDS)
        left = {task for task in self._background if task.cancel()}
        if left:
            await asyncio.wait(left, timeout=_CLOSE_SECONDS)

    def _end_background(self, point: Point, task: asyncio.Task[HookAnswer]) -> None:
        self._background.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, TimeoutError):
            error = HookFailed(f"no answer in {self.timeout:g} s")
        if isinstance(error, Exception) and self.report_late is not None:
            self.report_late(self, point, error)

    def _find_name(self, call: HookCall) -> str | None:
        """Return the name that the matcher accepts, "" if it accepts all, None if it does not."""
        names = claude.read_subject(self.rule.event, call)
        return self._matcher.find_match(names) if names else ""

    async def _run(self, call: HookCall) -> HookAnswer:
        spelled = ""
        if call.point in _TOOL_POINTS and self._find_name(call) == call.value["tool"]:
            spelled = call.value["tool"]  # the matcher uses gong's own name
        payload = claude.build_input(self.rule.event, call, spelled)
        code, output, errors = await self._execute(msgspec.json.encode(payload), call)
        if code == BLOCKING_EXIT:
            # Where a call cannot be blocked any more, exit code 2 is a remark
            reason = errors.strip() or output.strip()
            if call.point in GATES:
                return HookAnswer("block", reason or f"the hook {self.name} gave no reason")
            if call.point == "tool_result":
                # An interpreter ends with 2 where its script is missing
                remarks = tuple(filter(_NOT_STARTED.search, reason.split("\n")[:1]))
                return HookAnswer(context=reason, remarks=remarks)
            return HookAnswer(message=reason)
        if code != 0:
            complaint = " ".join((errors.strip() or output.strip()).split())[:_MAX_SHOWN_CHARS]
            raise HookFailed(f"exit code {code}{f': {complaint}' if complaint else ''}")
        text = output.strip()
        if not text.startswith("{"):
            field = claude.find_field(text)
            wrong = f"its output has {field} but does not begin with {{" if field else ""
            if call.point in _CONTEXT_POINTS:
                return HookAnswer(context=text, remarks=(wrong,) if wrong else ())
            if wrong:
                raise HookFailed(f"{wrong}, so it is no answer")
            return NO_ANSWER
        try:
            answer = msgspec.json.decode(text.encode(), type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeError) as error:
            kind = UnreadableDecision if claude.find_field(text) else HookFailed
            raise kind(f"its output is not a JSON object: {error}") from error
        return claude.read_answer(call, answer)

    async def _execute(self, data: bytes, call: HookCall) -> tuple[int, str, str]:
        """Run the command to its end and return exit code, output and errors."""
        with (
            tempfile.TemporaryFile() as input_file,
            tempfile.TemporaryFile() as output,
            tempfile.TemporaryFile() as errors,
        ):
            input_file.write(data)
            input_file.seek(0)
            words, variables = self._build_words(), self._build_variables(call)
            if self.sandbox is not None:
                words, variables = self.sandbox.wrap(words, variables)
            try:
                process = await asyncio.create_subprocess_exec(
                    *words,
                    stdin=input_file,
                    stdout=output,
                    stderr=errors,
                    cwd=call.facts.cwd,
                    env=variables,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise HookFailed(f"it cannot be started: {error}") from error
            try:
                code = await process.wait()
            except asyncio.CancelledError:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
                raise
            return code if code >= 0 else 128 - code, _read_text(output), _read_text(errors)

    def _build_words(self) -> list[str]:
        if self.rule.args is None:
            return [shutil.which("bash") or "sh", "-c", self.rule.command]
        words = [self.rule.command, *self.rule.args]
        for name in ("CLAUDE_PROJECT_DIR", "GONG_PROJECT_DIR"):
            words = [word.replace(f"${{{name}}}", self._project) for word in words]
        return words

    def _build_variables(self, call: HookCall) -> dict[str, str]:
        facts = call.facts
        return {
            **self._variables,
            "CLAUDE_PROJECT_DIR": self._project,
            "GONG_PROJECT_DIR": self._project,
            "CLAUDE_CODE_SESSION_ID": facts.session,
            "GONG_SESSION_ID": facts.session,
            "GONG_HOOK_EVENT": self.rule.event,
        }


def _read_text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_MAX_OUTPUT_BYTES).decode("utf-8", "replace")
