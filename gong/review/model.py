"""What a model finds in a change, stage by stage; each stage is a sub-agent that only reads.

stage      looks for
---------  ------------------------------------------------------------------------
security   injection, XSS, commands, keys that are written down, unsafe calls
quality    wrong results, complexity, names and comments that mislead
practice   lost errors, resources that leak, races, slow ways

A stage is not asked again about changes that it has answered for: its answer is kept by their
content, beside the store.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from tape.exchange.secrets import mask_text

from ..errors import ConfigurationError, GongError
from ..private_files import write_private_file
from ..tools.agent_runs import AgentOrder
from ..workflow.answers import MalformedAnswer, ask_again, find_object
from .findings import ReviewFinding

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ..agent.session import Session
    from .diff import ReviewedFile

STAGES = {
    "security": "SQL injection, cross-site scripting, command injection, keys that are written"
    " down, unsafe calls",
    "quality": "wrong results, needless complexity, names and comments that mislead",
    "practice": "lost errors, resources that leak, races, what is needlessly slow",
}
"""Stage of a review → what it looks for (M185)."""
STRICTNESS = {
    "strict": "Report everything that you would ask the author to change.",
    "normal": "Report faults and what will cause some; no matters of taste.",
    "loose": "Report only what is certainly wrong and matters.",
}
"""How strict a review is (M186)."""
SHAPE = (
    '{"findings": [{"file": "…", "lines": [1, 2], "severity": "critical" | "major" | "minor" |'
    ' "info", "category": "…", "text": "…", "fix": "…"}]}'
)
_CONTEXT_LINES = 12
_MOST_CHARS = 60_000


class StageAnswer(Struct, frozen=True):
    """What a stage answers."""

    findings: tuple[ReviewFinding, ...] = ()


class ReviewMemory:
    """What stages have answered, by the content that they were asked about: a file of JSON."""

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._known = msgspec.json.decode(file.read_bytes(), type=dict[str, StageAnswer])
        except (OSError, msgspec.MsgspecError):
            self._known = {}

    def get(self, key: str) -> StageAnswer | None:
        """Return an answer that was given before."""
        return self._known.get(key)

    def put(self, key: str, answer: StageAnswer) -> None:
        """Keep an answer, for good."""
        self._known[key] = answer
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private_file(self._file, msgspec.json.encode(self._known))


def show_changes(file: ReviewedFile) -> str:
    """Return the new lines of a file with those around them, numbered; new ones have a plus."""
    shown = {
        number
        for changed in file.changed
        for number in range(changed - _CONTEXT_LINES, changed + _CONTEXT_LINES + 1)
        if 1 <= number <= len(file.lines)
    }
    lines, last = [f"=== {file.path}"], 0
    for number in sorted(shown):
        if last and number != last + 1:
            lines.append("…")
        mark = "+" if number in file.changed else " "
        lines.append(f"{number:>6} {mark} {file.get_line(number)}")
        last = number
    return "\n".join(lines)


def build_key(stage: str, model: str, strictness: str, shown: str) -> str:
    """Return what an answer is kept under."""
    text = f"{stage}\0{model}\0{strictness}\0{shown}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


async def run_stage(session: Session, stage: str, strictness: str, shown: str) -> StageAnswer:
    """Ask a sub-agent; raises GongError where it fails or answers twice what cannot be read."""
    agents: Any = session.find_agents()
    text = mask_text(shown[:_MOST_CHARS]).text
    prompt = (
        f"Review these changes for {STAGES[stage]}. {STRICTNESS[strictness]} Lines with a plus are"
        " new; report only on them. Check in the code what you claim. Answer with this JSON object"
        f" alone: {SHAPE}\n\n{text}"
    )
    report = await agents.run(AgentOrder(prompt, "code-review", f"review: {stage}"))
    for again in (True, False):
        if not report.success:
            raise GongError(f"the review of {stage} failed: {report.output}")
        try:
            return msgspec.json.decode(find_object(report.output), type=StageAnswer)
        except (MalformedAnswer, msgspec.MsgspecError) as error:
            if not again:
                raise ConfigurationError(
                    f"the review of {stage} was answered twice with what cannot be read: {error}"
                ) from error
            wrong = MalformedAnswer(str(error))
        await agents.send(report.agent, ask_again(wrong, SHAPE))
        report = await agents.wait(report.agent)
    raise AssertionError("the loop returns or raises")


async def ask_model(
    session: Session,
    files: Sequence[ReviewedFile],
    *,
    strictness: str,
    memory: ReviewMemory,
) -> list[ReviewFinding]:
    """Return what the session's model finds, stage by stage. Raises GongError."""
    shown = "\n\n".join(show_changes(one) for one in files)
    model = session.setup.model.name
    found: list[ReviewFinding] = []
    for stage in STAGES:
        key = build_key(stage, model, strictness, shown)
        answer = memory.get(key)
        if answer is None:
            answer = await run_stage(session, stage, strictness, shown)
            memory.put(key, answer)
        found += [msgspec.structs.replace(one, source=model) for one in answer.findings]
    return found


async def apply_fixes(session: Session, found: Sequence[ReviewFinding]) -> str:
    """Let an agent fix findings in the session's folder, and return what it says."""
    listed = "\n".join(
        f"- {one.file}:{one.lines[0]}-{one.lines[1]} {one.severity} {one.category}: {one.text}"
        + (f" Fix: {one.fix}" if one.fix else "")
        for one in found
    )
    agents: Any = session.find_agents()
    prompt = f"Fix these findings of a review, and nothing else:\n\n{listed}"
    report = await agents.run(AgentOrder(prompt, "fixer", "fix what the review found"))
    if not report.success:
        raise GongError(f"fixing failed: {report.output}")
    return str(report.output)
