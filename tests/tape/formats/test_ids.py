"""M144: ids of calls as each provider takes them, one to one."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tape.formats.encoder import (
    ANTHROPIC_IDS,
    GEMINI_IDS,
    MISTRAL_IDS,
    OPENAI_CHAT_IDS,
    OPENAI_RESPONSES_IDS,
    CallIds,
    to_tool_name,
)

BATCHES = st.lists(st.lists(st.sampled_from(["a", "a|", "a_", "", "x" * 99])))
RULES = [ANTHROPIC_IDS, GEMINI_IDS, MISTRAL_IDS, OPENAI_CHAT_IDS, OPENAI_RESPONSES_IDS]


def given_ids(rule, *calls):
    ids = CallIds(rule)
    return [ids.call(call) for call in calls]


def test_what_a_provider_takes_stays_as_it_is():
    assert given_ids(ANTHROPIC_IDS, "c_1a2b3c4d_0", "toolu_01") == ["c_1a2b3c4d_0", "toolu_01"]
    assert given_ids(MISTRAL_IDS, "abcDEF123") == ["abcDEF123"]


def test_other_characters_become_underscores_unless_that_id_is_taken():
    plain, changed, again = given_ids(ANTHROPIC_IDS, "call_1_fc_2", "call_1|fc_2", "é")
    assert (plain, again) == ("call_1_fc_2", "_")
    assert changed.startswith("call_1_fc_2_")


def test_what_is_cut_stays_apart():
    one, other = given_ids(OPENAI_CHAT_IDS, "x" * 400 + "a", "x" * 400 + "b")
    assert one != other
    assert len(one) == len(other) == 40


@pytest.mark.parametrize("rule", RULES)
@given(BATCHES)
def test_every_call_has_an_id_of_its_own_and_its_result_the_same(rule, batches):
    ids, sent = CallIds(rule), []
    for batch in batches:
        ids.begin_answer()
        given_to = [ids.call(call) for call in batch]
        answered = [ids.result(call).id for call in batch]
        assert answered == given_to
        sent += given_to
    assert len(set(sent)) == len(sent)
    assert all(rule.can_send(one) for one in sent)


@given(st.text(max_size=200))
def test_any_tool_has_a_name_that_can_be_sent(name):
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", to_tool_name(name))
