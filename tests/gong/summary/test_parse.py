import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gong.summary.parse import parse_summary
from tape.model.entries import Summary
from tape.model.summary import render_summary

CANONICAL = """\
## Goal
Ship release 2.

## Constraints & Preferences
- Never push to main.

## Progress
### Done
- [x] lint is clean
- tests pass,
  all 40 of them
### In Progress
- the changelog
### Blocked
- (none)

## Key Decisions
- **Queue**: use Redis

## Next Steps
1. tag it
2. announce it

## Critical Context
- the port is 8143
"""
MEANT = Summary(
    goal="Ship release 2.",
    constraints=("Never push to main.",),
    done=("[x] lint is clean", "tests pass,\nall 40 of them"),
    in_progress=("the changelog",),
    decisions=("**Queue**: use Redis",),
    next_steps=("tag it", "announce it"),
    critical_context=("the port is 8143",),
)


def bold(text):
    lines = [line.lstrip("# ") if line.startswith("#") else line for line in text.split("\n")]
    heads = {line.lstrip("# ") for line in text.split("\n") if line.startswith("#")}
    return "\n".join(f"**{line}:**" if line in heads else line for line in lines)


@pytest.mark.parametrize(
    "text",
    [
        CANONICAL,
        CANONICAL.replace("\n", "\r\n"),
        f"```markdown\n{CANONICAL}```",
        f"Here is the summary:\n\n```\n{CANONICAL}\n```\n",
        CANONICAL.replace("### ", "#### ").replace("## ", "# "),
        bold(CANONICAL),
        CANONICAL.replace("- ", "* ").replace("* (", "• ("),
        CANONICAL.replace("- ", "  - ").replace("  all", "    all"),
        CANONICAL.replace("## Goal", "## 1. Goal").replace("## Key", "## 4) Key"),
        CANONICAL.replace("Constraints & Preferences", "Constraints and preferences:"),
    ],
    ids=["plain", "crlf", "fenced", "said", "levels", "bold", "stars", "indented", "count", "and"],
)
def test_headings_and_bullets_are_known_however_they_are_written(text):
    """M157: the sections a summariser is asked for are read back."""
    assert parse_summary(text) == MEANT


def test_chinese_headings_are_known():
    text = (
        "## 目标\n发布 2.0\n\n## 约束与偏好\n- 不要推送到 main\n\n## 进展\n### 已完成\n- 测试通过\n"
        "### 进行中\n- 写日志\n### 受阻\n- 无\n\n## 关键决策\n- 用 Redis\n\n"
        "## 后续步骤\n1. 打标签\n\n## 关键上下文\n- 端口是 8143\n"
    )
    assert parse_summary(text) == Summary(
        goal="发布 2.0",
        constraints=("不要推送到 main",),
        done=("测试通过",),
        in_progress=("写日志",),
        decisions=("用 Redis",),
        next_steps=("打标签",),
        critical_context=("端口是 8143",),
    )


def test_bullets_that_name_a_part_of_the_progress_are_headings():
    text = "Goal: go\n\n## Progress\n- **Done:**\n  - a\n  - b\n- **In Progress**: c\n- Blocked:\n"
    assert parse_summary(text) == Summary(goal="go", done=("a", "b"), in_progress=("c",))


def test_boxes_under_progress_say_whether_it_is_done():
    assert parse_summary("## Goal\nx\n## Progress\n- [x] a\n- [ ] b\n- c") == Summary(
        goal="x", done=("a", "c"), in_progress=("b",)
    )


def test_text_under_an_unknown_heading_is_kept_as_context():
    text = "The gist.\n\n## Goal\nx\n\n## Weather\n- it rains\n\n## Done\n### Backend\n- y"
    assert parse_summary(text) == Summary(
        goal="x", done=("y",), critical_context=("The gist.", "it rains")
    )


def test_code_in_an_item_is_no_heading():
    text = "## Goal\nx\n## Done\n- ran it:\n```sh\n# Goal\nDone:\n```\n- then\n"
    assert parse_summary(text).done == ("ran it:\n```sh\n# Goal\nDone:\n```", "then")


@given(st.text())
def test_any_text_is_read(text):
    assert isinstance(parse_summary(text), Summary)


LINES = st.text(max_size=60).map(lambda text: " ".join(text.split()))
ITEMS = st.lists(LINES.filter(lambda line: parse_summary(f"- {line}").critical_context), max_size=4)
GOALS = LINES.filter(lambda line: line and parse_summary(f"## Goal\n{line}").goal == line)
SUMMARIES = st.builds(
    Summary,
    goal=GOALS,
    **{
        name: ITEMS.map(tuple)
        for name in Summary.__struct_fields__
        if name not in {"goal", "files_read", "files_changed", "requests"}
    },
)


@given(SUMMARIES)
def test_what_a_summary_says_as_markdown_is_read_back(summary):
    assert parse_summary(render_summary(summary)) == summary


def test_files_and_requests_are_read_back_too():
    whole = replace(MEANT, files_read=("a",), files_changed=("b", "c"), requests=("do\nit", "go"))
    assert parse_summary(render_summary(whole)) == whole
