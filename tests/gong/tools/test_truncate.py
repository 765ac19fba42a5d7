import hashlib
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from gong.tool_settings import MAX_BYTES
from gong.tools import truncation
from gong.tools.limits import format_size
from gong.tools.truncation import TruncatedText, truncate_head, truncate_line, truncate_tail

CORPUS = Path(__file__).parents[4] / "shared/corpus/truncate/pi_truncate.jsonl"


def lines(count, line="line {n}"):
    return "\n".join(line.format(n=n) for n in range(1, count + 1))


def result(content, **facts):
    text = facts.pop("of", content)
    return TruncatedText(
        **{
            "content": content,
            "truncated": content != text,
            "total_lines": text.count("\n") + 1,
            "total_bytes": len(text.encode()),
            "output_lines": content.count("\n") + 1,
            "output_bytes": len(content.encode()),
            "max_lines": 2000,
            "max_bytes": 51_200,
            **facts,
        }
    )


@pytest.mark.parametrize("cut", [truncate_head, truncate_tail])
@pytest.mark.parametrize(
    "text",
    ["", "a", "a\nb\nc", "a\nb\nc\n", lines(2000), "a" * 50_000, "a" * 51_200, "é" * 25_600],
)
def test_what_fits_stays_as_it_is(cut, text):
    """M110 J8-1.1 J8-1.5 J8-2.1 J8-2.5"""
    assert cut(text) == result(text)


def test_a_head_keeps_whole_lines():
    """M109 M110 J8-1.2"""
    text = lines(2500)
    assert truncate_head(text) == result(lines(2000), of=text, truncated_by="lines")


def test_a_tail_keeps_whole_lines():
    """M109 M110 J8-2.2"""
    text = lines(3000)
    kept = text[text.index("line 1001\n") :]
    assert truncate_tail(text) == result(kept, of=text, truncated_by="lines")


def test_bytes_cut_before_the_line_that_does_not_fit():
    """M109 M110 J8-1.3 J8-2.3"""
    text = "\n".join(["x" * 1023] * 100)
    kept = "\n".join(["x" * 1023] * 50)
    for cut in (truncate_head, truncate_tail):
        assert cut(text) == result(kept, of=text, truncated_by="bytes")
    at_50_000 = "\n".join(["x" * 999] * 50)
    longer = f"{at_50_000}\n{'x' * 999}"
    assert truncate_head(longer, max_bytes=50_000) == result(
        at_50_000, of=longer, truncated_by="bytes", max_bytes=50_000
    )


def test_a_head_whose_first_line_is_too_long_is_empty():
    """M110 J8-1.4"""
    text = "a" * 51_201 + "\nb"
    assert truncate_head(text) == result(
        "", of=text, truncated_by="bytes", output_lines=0, first_line_exceeds_limit=True
    )


def test_a_tail_whose_last_line_is_too_long_is_its_end():
    """M110 J8-2.4"""
    text = "short\n" + "a" * 60_000
    assert truncate_tail(text) == result(
        "a" * 51_200, of=text, truncated_by="bytes", last_line_partial=True
    )


@pytest.mark.parametrize(
    ("limit", "kept"),
    [(3, "def"), (4, "def"), (6, "def"), (7, "😀def"), (8, "😀def"), (9, "é😀def")],
)
def test_a_partial_line_begins_with_a_whole_character(limit, kept):
    """M110"""
    cut = truncate_tail("éé😀def", max_bytes=limit)
    assert (cut.content, cut.last_line_partial) == (kept, True)


def test_no_limit_of_lines_leaves_bytes_alone_to_cut():
    """M109"""
    text = lines(3000)
    assert truncate_head(text, max_lines=None) == result(text, max_lines=None)


def test_a_line_is_cut_by_characters_and_says_so():
    """M109 J8-3.1 J8-3.2"""
    assert truncate_line("z" * 500).content == "z" * 500
    cut = truncate_line("é" * 800)
    assert cut == TruncatedText(
        content="é" * 500 + "... [truncated]",
        truncated=True,
        truncated_by="chars",
        total_lines=1,
        total_bytes=1600,
        output_lines=1,
        output_bytes=1015,
        last_line_partial=True,
        max_lines=None,
        max_bytes=None,
    )
    assert truncate_line("hello world", 5).content == "hello... [truncated]"


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0B"), (1023, "1023B"), (1024, "1.0KB"), (MAX_BYTES, "50.0KB"), (1_572_864, "1.5MB")],
)
def test_sizes_read_as_people_say_them(size, text):
    assert format_size(size) == text


TEXTS = st.text(st.sampled_from("ab\né😀\r\u2028"), max_size=40)
LIMITS = st.integers(1, 30)


@given(TEXTS, LIMITS, LIMITS)
def test_a_cut_is_a_part_within_its_limits(text, max_lines, max_bytes):
    """M110"""
    head, tail = (
        truncate_head(text, max_lines, max_bytes),
        truncate_tail(text, max_lines, max_bytes),
    )
    assert text.startswith(head.content)
    assert text.endswith(tail.content)
    for cut in (head, tail):
        assert len(cut.content.encode()) == cut.output_bytes <= max_bytes
        assert cut.output_lines <= max_lines
        assert cut.truncated == (cut.content != text)
        assert (cut.total_lines, cut.total_bytes) == (text.count("\n") + 1, len(text.encode()))


def recorded():
    if not CORPUS.exists():
        return []
    cases = map(json.loads, CORPUS.read_text("utf-8").split("\n")[:-1])
    return [pytest.param(case, id=case["id"]) for case in cases]


def text_of(given):
    if "text" in given:
        return given["text"]
    if "repeat" in given:
        return given["repeat"]["s"] * given["repeat"]["n"]
    made = given["lines"]
    numbers = range(made["start"], made["start"] + made["count"])
    text = "\n".join(made["template"].replace("{n}", str(n)) for n in numbers)
    return text + ("\n" if made["final_newline"] else "")


def snake(name):
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)


def answer(case):
    options = {snake(name): value for name, value in case["options"].items()}
    if case["function"] == "format_size":
        return {"text": format_size(options["bytes"])}
    cut = getattr(truncation, case["function"])(text_of(case["input"]), **options)
    digest = hashlib.sha256(cut.content.encode()).hexdigest()
    return {
        **asdict(cut),
        "text": cut.content,
        "was_truncated": cut.truncated,
        "content_sha256": digest,
        "content_chars": len(cut.content),
        "content_starts": cut.content[:40],
        "content_ends": cut.content[-40:],
    }


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not beside the project")
@pytest.mark.parametrize("case", recorded())
def test_recorded_cuts_are_the_same(case):
    expected = case["expect"]
    facts = expected if isinstance(expected, dict) else {"text": expected}
    wanted = {snake(name): value for name, value in facts.items()}
    given = answer(case)
    assert {name: given[name] for name in wanted} == wanted
