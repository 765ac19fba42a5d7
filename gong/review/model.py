"""What a model finds in a change, stage by stage; each stage is a sub-agent that only reads.

stage      looks for
---------  ------------------------------------------------------------------------
security   injection, XSS, commands, keys that are written down, unsafe calls
quality    wrong results, complexity, names and comments that mislead
practice   lost errors, resources that leak, races, slow ways

A stage is not asked again about changes that it has answered for: its answer is kept by their
content, beside the store. One that fails is named, and costs nothing of what the others found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tape.errors import TapeError
from tape.masking.secrets import mask_text

from ..errors import GongError
from ..tools.agent_runs import AgentOrder
from ..workflow.answers import MalformedAnswer, ask_again, find_object
from .findings import FailedPart, ReviewFinding, mask_finding
from .memory import build_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..agent.session import Session
    from .diff import ReviewedFile
    from .memory import ReviewMemory

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
_MAX_CHARS = 60_000


class StageAnswer(NamedTuple):
    """What a stage answers."""

    findings: tuple[ReviewFinding, ...] = ()
    error: str = ""
    """Why the stage failed, or which findings cannot be read; empty for a whole answer."""


class ModelAnswer(NamedTuple):
    """What a model finds."""

    found: list[ReviewFinding]
    stages: list[str]
    """Those that answered for all changes."""
    failed: list[FailedPart]


def show_changes(file: ReviewedFile) -> str:
    """Return the new lines of a file with those around them, numbered; new ones have a plus."""
    numbers = {
        number
        for changed in file.changed
        for number in range(changed - _CONTEXT_LINES, changed + _CONTEXT_LINES + 1)
        if 1 <= number <= len(file.lines)
    }
    lines, last = [f"=== {file.path}"], 0
    for number in sorted(numbers):
        if last and number != last + 1:
            lines.append("…")
        mark = "+" if number in file.changed else " "
        lines.append(f"{number:>6} {mark} {file.get_line(number)}")
        last = number
    return "\n".join(lines)


def split_changes(files: Sequence[ReviewedFile]) -> Iterator[str]:
    """Yield the changes of files, as many together as a model is asked about at once."""
    held = ""
    for changes in (part for file in files for part in _split_file(show_changes(file))):
        if held and len(held) + len(changes) > _MAX_CHARS:
            yield held
            held = ""
        held += f"\n\n{changes}" if held else changes
    if held:
        yield held


def _split_file(changes: str) -> Iterator[str]:
    """Yield the changes of one file, in parts between lines where they are too long."""
    head, *lines = changes.split("\n")
    part = head
    for line in lines:
        if part != head and len(part) + len(line) > _MAX_CHARS:
            yield part
            part = head
        part += f"\n{line}"
    yield part


async def run_stage(session: Session, stage: str, strictness: str, changes: str) -> StageAnswer:
    """Ask a sub-agent, and once more where its answer cannot be read; raises GongError."""
    agents: Any = session.find_agents()
    text = mask_text(changes).text
    prompt = (
        f"Review these changes for {STAGES[stage]}. {STRICTNESS[strictness]} Lines with a plus are"
        " new; report only on them. Check in the code what you claim. Answer with this JSON object"
        f" alone: {SHAPE}\n\n{text}"
    )
    report = await agents.run(AgentOrder(prompt, "code-review", f"review: {stage}"))
    first = _read_report(report)
    if not report.success or not first.error:
        return first
    await agents.send(report.agent, ask_again(MalformedAnswer(first.error), SHAPE))
    second = _read_report(await agents.wait(report.agent))
    if not second.error:
        return second
    return StageAnswer((*first.findings, *second.findings), second.error)


def _read_report(report: Any) -> StageAnswer:
    """Return the findings in what a sub-agent reports: those that can be read."""
    if not report.success:
        return StageAnswer(error=report.output or "it ended without an answer")
    try:
        answer = find_object(report.output, "findings")
        report_fields = msgspec.json.decode(answer, type=dict[str, Any])
        if "findings" not in report_fields:
            return StageAnswer(error="its answer cannot be read: it has no list `findings`")
        listed = msgspec.convert(report_fields["findings"], tuple[Any, ...])
    except (MalformedAnswer, msgspec.MsgspecError) as error:
        return StageAnswer(error=f"its answer cannot be read: {error}")
    findings, wrong = [], []
    for row in listed:
        try:
            findings.append(msgspec.convert(row, ReviewFinding))
        except msgspec.ValidationError as error:
            wrong.append(str(error))
    if wrong:
        reason = f"{len(wrong)} of its {len(listed)} findings cannot be read: {wrong[0]}"
        return StageAnswer(tuple(findings), reason)
    return StageAnswer(tuple(findings))


async def ask_model(
    session: Session,
    files: Sequence[ReviewedFile],
    *,
    strictness: str,
    memory: ReviewMemory,
) -> ModelAnswer:
    """Return what the session's model finds, stage by stage, and which stages failed."""
    model = session.setup.model.name
    findings: list[ReviewFinding] = []
    failed: dict[str, str] = {}
    for changes in split_changes(files):
        for stage in STAGES:
            key = build_key(stage, model, strictness, changes)
            known = memory.get(key)
            if known is None:
                answer = await _try_stage(session, stage, strictness, changes)
                known = tuple(mask_finding(finding) for finding in answer.findings)
                if answer.error:
                    failed.setdefault(stage, mask_text(answer.error).text)
                else:
                    memory.keep({key: known})
            findings += [msgspec.structs.replace(finding, source=model) for finding in known]
    answered = [stage for stage in STAGES if stage not in failed]
    return ModelAnswer(findings, answered, [FailedPart(*failure) for failure in failed.items()])


async def _try_stage(session: Session, stage: str, strictness: str, changes: str) -> StageAnswer:
    try:
        return await run_stage(session, stage, strictness, changes)
    except (GongError, TapeError, OSError) as error:
        return StageAnswer(error=str(error))


async def apply_fixes(session: Session, findings: Sequence[ReviewFinding]) -> str:
    """Let an agent fix findings in the session's folder, and return what it says."""
    listed = "\n".join(
        f"- {finding.file}:{finding.lines[0]}-{finding.lines[1]} {finding.severity}"
        f" {finding.category}: {finding.text}" + (f" Fix: {finding.fix}" if finding.fix else "")
        for finding in findings
    )
    agents: Any = session.find_agents()
    prompt = f"Fix these findings of a review, and nothing else:\n\n{listed}"
    report = await agents.run(AgentOrder(prompt, "fixer", "fix what the review found"))
    if not report.success:
        raise GongError(f"fixing failed: {report.output}")
    return str(report.output)
