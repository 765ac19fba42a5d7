"""A summary in Markdown, as models write it, read back into its fields. Pure.

`parse_summary` accepts the headings that models write, and reads the output of
`tape.model.summary.render_summary` back exactly. Text under no heading or an unknown one becomes
context, so that nothing is lost. `validate_summary` refuses an answer that is no summary.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tape.model.entries import Summary

from ..errors import SummaryUnusable

_TITLES = {
    "goal": "goal|goals|objective|main goal|user requests and intent|primary request and intent"
    "|目标|任务目标|用户目标|用户请求意图",
    "constraints": "constraints and preferences|constraints|preferences|约束偏好|约束|偏好|限制",
    "progress": "progress|status|进展|进度|当前进展",
    "done": "done|completed|completed work|已完成|完成|已完成工作",
    "in_progress": "in progress|current work|current state|进行中|正在进行|当前工作|当前工作状态",
    "blocked": "blocked|blockers|open problems|受阻|阻塞|阻碍|被阻塞",
    "decisions": "key decisions|decisions|关键决策|关键决定|决策|决定",
    "next_steps": "next steps|next step|open tasks|pending tasks|todo|to do"
    "|下一步|后续步骤|下一步计划|待办|待办任务|待办事项",
    "critical_context": "critical context|context|technical context|key technical context"
    "|errors and fixes|notes|关键上下文|关键技术上下文|上下文|错误修复|背景",
    "files_read": "files read|read files|已读文件|读取文件",
    "files_changed": "files changed|changed files|modified files|已修改文件|修改文件",
    "requests": "the user's own requests word for word|user's own requests|用户原话",
}
_FIELDS = {title: name for name, titles in _TITLES.items() for title in titles.split("|")}
_ELSEWHERE = "critical_context"
_LOWEST = 7
"""Level of a heading without `#`: below all those with it."""

_HASHES = r" {0,3}(#{1,6})\s+(?P<title>\S.*?)[\s#]*\Z"
_BOLD = (
    r"\s{0,3}(?:\d{1,2}[.)、]\s*)?(?:\*\*|__)(?P<title>[^*_]{1,60}?)(?:\*\*|__)"
    r"\s*[:：]?(?P<rest>.*)\Z"
)
_PLAIN = r" {0,3}(?:\d{1,2}[.)、]\s*)?(?P<title>[^:：]{1,60}?)\s*(?:[:：](?P<rest>.*))?\Z"
_BULLET = r"(?P<indent>\s*)(?:[-*•‣+–]|\d{1,3}[.)、])\s+(?P<text>\S.*)\Z"
_RULE = r"\s*(?:[-=*_]\s*){3,}\Z|\s*[-*•+–]\s*\Z"
_BOX = r"\[(?P<mark>[ xX✓✔])\]\s+"
_NOTHING = (
    r"(?i)[(\[（*_]*(?:none|nothing|n/a|empty|无|暂无|没有)[^\w]*"
    r"(?:yet|so far|at the moment)?[^\w]*\Z"
)
_FENCE = r"\s*(?:```|~~~)"


def parse_summary(markdown: str) -> Summary:
    """Return the fields of a summary in Markdown; the goal is empty if it has none."""
    reader = _SummaryReader()
    lines = _strip_fence(markdown)
    fences = [number for number, line in enumerate(lines) if re.match(_FENCE, line)]
    pairs = zip(fences[::2], fences[1::2], strict=False)
    fenced = {number for begin, end in pairs for number in range(begin, end + 1)}
    for number, line in enumerate(lines):
        reader.read_line(line, literal=number in fenced)
    return reader.build_summary()


class _Heading(NamedTuple):
    """A heading: the field it begins, None when it is not known, its level, and words behind."""

    name: str | None
    level: int
    rest: str = ""


def _parse_heading(line: str) -> _Heading | None:
    if match := re.match(_HASHES, line):
        return _Heading(_find_field(match["title"]), len(match[1]))
    if match := re.match(_BOLD, line):
        name = _find_field(match["title"])
        return _Heading(name, _LOWEST, match["rest"].strip()) if name else None
    bullet = re.match(_BULLET, line)
    match = re.match(_PLAIN, line) if bullet is None or line.lstrip()[0].isdigit() else None
    name = _find_field(match["title"]) if match else None
    return _Heading(name, _LOWEST, ((match and match["rest"]) or "").strip()) if name else None


def _find_field(title: str) -> str | None:
    """Return the field of a title, in any numbering, markup or spelling."""
    plain = re.sub(r"\A\W*\d{1,2}[.)、]\s*", "", title.lower())
    plain = re.sub(r"[’']", "'", plain).replace("&", " and ")
    whole = _look_up_title(plain)
    return whole or _look_up_title(re.split(r"[:：/–—-]", plain.rstrip(":： *_"))[-1])


def _look_up_title(title: str) -> str | None:
    words = " ".join(re.sub(r"[^\w']|_", " ", title).split())
    return _FIELDS.get(words) or _FIELDS.get(re.sub(r"[与和及的\s]", "", words))


def _strip_fence(markdown: str) -> list[str]:
    """Return the lines without a code fence around all of them, or words that announce them."""
    lines = markdown.strip().replace("\r\n", "\n").split("\n")
    fences = [number for number, line in enumerate(lines) if re.match(_FENCE, line)]
    headings = [number for number, line in enumerate(lines) if _parse_heading(line)]
    if len(fences) > 1 and headings and fences[0] < headings[0] and fences[-1] > headings[-1]:
        return lines[fences[0] + 1 : fences[-1]]
    first = headings[0] if headings else 0
    before = [line for line in lines[:first] if not line.rstrip().endswith((":", "："))]
    return before + lines[first:]


class _SummaryReader:
    """Reads line by line; `field` is where items go."""

    def __init__(self) -> None:
        self.items: dict[str, list[str]] = {name: [] for name in {*_FIELDS.values()}}
        self.field = _ELSEWHERE
        self.level = 0
        self.indent: int | None = None
        """Of the first bullet in this section: deeper ones belong to the item above."""
        self.parted = False
        """Bullets may name parts of the progress."""
        self.open = False
        """Whether the next line may continue the newest item."""

    def read_line(self, line: str, *, literal: bool) -> None:
        if literal:
            self._continue_item(line.rstrip())
        elif not line.strip():
            self.open = self.open and self.field == "goal"
        elif heading := _parse_heading(line):
            self._begin_section(heading)
        elif re.match(_RULE, line):
            self.open = False
        elif self.field == "goal":
            self._continue_item(line.strip())
        elif bullet := re.match(_BULLET, line):
            self._add_bullet(line, len(bullet["indent"]), bullet["text"].strip())
        elif self.open or (line[:1].isspace() and self.items[self.field]):
            self._continue_item(line.strip())
        else:
            self._add_item(line.strip())

    def _begin_section(self, heading: _Heading) -> None:
        if heading.name is None and heading.level > self.level > 0:
            self.open = False
            return  # an unknown heading inside a section is part of it
        self.field = heading.name or _ELSEWHERE
        self.level, self.indent, self.open = heading.level, None, False
        self.parted = self.field == "progress"
        if heading.rest:
            self._add_item(heading.rest)

    def _add_bullet(self, line: str, indent: int, text: str) -> None:
        # "- Done: x" under Progress begins a part, as a heading would
        inner = _parse_heading(text) if self.parted else None
        if inner is not None and inner.name:
            self.field, self.indent, self.open = inner.name, None, False
            if inner.rest:
                self._add_item(inner.rest)
            return
        if self.indent is None:
            self.indent = indent
        # a deeper bullet continues the item above
        if indent > self.indent + 1 and self.items[self.field]:
            self._continue_item(line.strip())
        else:
            self._add_item(text)

    def _continue_item(self, line: str) -> None:
        items = self.items[self.field]
        if items:
            items[-1] += f"\n{line}"
        else:
            self._add_item(line)

    def _add_item(self, text: str) -> None:
        self.open = True
        name = self.field
        if name == "progress":
            box = re.match(_BOX, text)
            name = "in_progress" if box and box["mark"] == " " else "done"
            text = text[box.end() :] if box else text
        self.items[name].append(text)

    def build_summary(self) -> Summary:
        fields = {
            name: tuple(item.rstrip() for item in items if not re.match(_NOTHING, item.strip()))
            for name, items in self.items.items()
            if name != "progress"
        }
        goal = "\n".join(fields.pop("goal")).strip()
        return Summary(goal=goal, **fields)


_MIN_SUMMARY_CHARS = 30
"""Minimum characters of a usable summary."""
_TOOL_CALL = r"\s*(?:```\w*\s*)?(?:<(?:\w+:)?(?:tool_call|function_calls?|invoke)|\{\s*\"\w+\"\s*:)"
_REFUSAL = (
    r"(?i)(?:I(?:'m| am) sorry|sorry,|I (?:can(?:no|')t|am unable|won't)|as an ai\b"
    r"|抱歉|对不起|我(?:无法|不能))"
)


def validate_summary(markdown: str) -> Summary:
    """Return a model's answer as a summary; raises SummaryUnusable."""
    summary = parse_summary(markdown)
    if not summary.goal:
        why = "is a refusal" if re.match(_REFUSAL, markdown.strip()) else "names no goal"
        if re.match(_TOOL_CALL, markdown):
            why = "is a tool call: the model wrote no text"
        raise SummaryUnusable(f"the summary {why if markdown.strip() else 'is empty'}")
    if re.match(_REFUSAL, summary.goal):
        raise SummaryUnusable("the model refused to write a summary")
    if summary == Summary(goal=summary.goal):
        raise SummaryUnusable("the summary has nothing but a goal")
    if len(markdown.strip()) < _MIN_SUMMARY_CHARS:
        raise SummaryUnusable("the summary is too short to continue from")
    return summary
