from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.llm.models import load_presets
from gong.llm.wires.openai_chat.stream import ThinkTags
from tape.model.entries import Text, Thinking
from tests.wires.openai_chat import HELLO, PLAIN, chunk, events_for
from tests.wires.server import Reply, accumulated, chunks


def told(pieces):
    """Return the thoughts and the words in a text that comes in pieces."""
    tags = ThinkTags()
    said = [one for piece in pieces for one in tags.feed(piece)] + [*tags.flush_rest()]
    kinds = [kind for kind, _ in said]
    assert kinds == sorted(kinds, reverse=True), "thoughts come before words"
    return tuple(
        "".join(text for kind, text in said if kind == one) for one in ("thinking", "text")
    )


@pytest.mark.parametrize(
    ("text", "thoughts", "words"),
    [
        ("<think>\nhm\n</think>\n\n4", "\nhm\n", "4"),
        (" \n<think>hm</think>4", "hm", "4"),
        ("<think></think>4", "", "4"),
        ("<think>a </thin b</think>4 <think>c</think>", "a </thin b", "4 <think>c</think>"),
        ("<think>hm</thi", "hm</thi", ""),
        ("<think>hm</think>\n", "hm", ""),
        ("<thinking>4", "", "<thinking>4"),
        ("<thi", "", "<thi"),
        (" 4", "", " 4"),
        ("4 < 5", "", "4 < 5"),
        ("", "", ""),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_only_tags_at_the_beginning_hold_thoughts(text, thoughts, words, size):
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert told(pieces) == (thoughts, words)


@given(st.text("<think/> \na", max_size=40), st.lists(st.integers(0, 60)))
def test_cutting_the_text_changes_nothing(text, places):
    text = f"<think>{text}" if len(text) % 2 else text
    borders = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    pieces = [text[a:b] for a, b in pairwise(borders)]
    assert told(pieces) == told([text])


async def answer_of(preset, *events):
    return accumulated(await events_for(Reply(chunks(*events)), HELLO, preset))


@pytest.mark.parametrize("name", ["ollama", "lmstudio", "llamacpp", "vllm", "minimax"])
async def test_hosts_that_tag_thinking_give_thinking(name):
    events = (chunk({"content": "<think>h"}), chunk({"content": "m</think>\n\n4"}, "stop"))
    assert (await answer_of(load_presets({})[name], *events)).content == (Thinking("hm"), Text("4"))


async def test_elsewhere_a_tag_is_a_word():
    answer = await answer_of(PLAIN, chunk({"content": "<think>hm</think>4"}, "stop"))
    assert answer.content == (Text("<think>hm</think>4"),)
