import json
import re
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.llm.tokens import TokenCount, count_tokens, estimate_cjk_two, estimate_tokens

ROOT = Path(__file__).parents[3]
ENGLISH = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
TEXTS = {
    "English": ENGLISH,
    "code": (ROOT / "gong/llm/client.py").read_text("utf-8"),
    "Chinese": (ROOT / "bench/texts/chinese.txt").read_text("utf-8"),
    "JSON": json.dumps([{"id": n, "name": f"n {n}", "ok": True} for n in range(99)], indent=1),
}
NOWHERE = {"TIKTOKEN_CACHE_DIR": "/nonexistent"}


@pytest.mark.parametrize("kind", TEXTS)
def test_an_estimate_is_less_than_a_fifth_off(kind):
    """M159 J12-1.1: English, Chinese, code and JSON, against the real tokenizer."""
    pytest.importorskip("bpe_openai", reason="no tokenizer here")
    exact = count_tokens(TEXTS[kind], "gpt-5", NOWHERE)
    assert exact.exact
    assert abs(estimate_tokens(TEXTS[kind]) / exact.tokens - 1) < 0.2


def test_an_exact_count_uses_the_tokenizer_of_the_model():
    pytest.importorskip("bpe_openai", reason="no tokenizer here")
    text = "hello world, 你好世界 <|endoftext|>"
    newer, older = count_tokens(text, "gpt-4o", NOWHERE), count_tokens(text, "gpt-4-turbo", NOWHERE)
    assert newer.exact
    assert older.exact
    assert newer.tokens < older.tokens


@pytest.mark.parametrize("model", ["claude-sonnet-5-5", "gemini-3", "", "llama"])
def test_a_model_without_an_open_tokenizer_is_estimated(model):
    assert count_tokens("hello world", model, NOWHERE) == TokenCount(
        estimate_tokens("hello world"), exact=False
    )


def test_nothing_is_no_tokens_and_more_text_is_never_fewer():
    """J12-1.2"""
    assert estimate_tokens("") == 0
    sizes = [estimate_tokens(ENGLISH[:end]) for end in range(0, len(ENGLISH), 97)]
    assert sizes == sorted(sizes)


def test_a_megabyte_of_one_character_is_counted_quickly():
    assert estimate_tokens("a" * 1_000_000) > 100_000
    assert estimate_tokens("漢" * 100_000) == 80_000


def test_a_long_text_is_counted_in_parts_without_its_size_in_memory():
    text = ENGLISH * (2_000_000 // len(ENGLISH))
    tracemalloc.start()
    try:
        tokens = estimate_tokens(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000
    assert tokens == pytest.approx(estimate_tokens(ENGLISH) * len(text) / len(ENGLISH), rel=0.01)


PIECE = re.compile(
    r"(?P<kana>[\u3041-\u30ff\u31f0-\u31ff]+)"
    r"|(?P<hangul>[\uac00-\ud7af\u1100-\u11ff]+)"
    r"|(?P<han>[\u2e80-\u303f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef]+)"
    r"|(?P<word>[A-Z]?[a-z]+|[A-Z]+)|(?P<digits>[0-9]+)|(?P<blanks>[ \t]+)|(?P<lines>[\r\n]+)"
    r"|(?P<marks>[!-/:-@\[-`{-~]+)|(?P<other>.)",
    re.DOTALL,
)
PER_CHARACTER = {"kana": 690, "hangul": 740, "han": 800, "other": 410}


def estimate_by_pieces(text):
    """Add up the weights piece by piece, in thousandths of a token."""
    total, glued = 0, False
    for match in PIECE.finditer(text):
        kind, size = match.lastgroup, len(match[0])
        if kind == "word":
            total += 920 + 117 * max(0, size - 5) - 140 * glued
        elif kind == "digits":
            total += 1860 * -(-size // 3)
        elif kind == "blanks":
            total += 690 * (size > 1)
        elif kind == "lines":
            total += 580
        elif kind == "marks":
            total += 730 + 150 * (size - 1)
        else:
            total += PER_CHARACTER[kind] * size
        glued = kind in {"word", "digits"}
    return -(-total // 1000)


@given(st.text(st.sampled_from("aabAB019 \t\r\n.,\\\x00\x7féßあア한日，\ud800😀")) | st.text())
def test_the_passes_by_class_add_up_to_the_weights_of_the_pieces(text):
    """M159: one pass for each class of characters gives what a loop over all pieces gives."""
    size = len(text.encode("utf-8", "surrogatepass"))
    assert estimate_tokens(text) == min(estimate_by_pieces(text), size)


def test_the_rough_rule_of_two_for_a_character():
    """M159: the rule as it stands there, named; the product uses the weighted estimate."""
    assert estimate_cjk_two("你好 hello world") == 7
