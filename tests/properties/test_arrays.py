"""Arrays that come broken leave whole, and nothing anybody said is lost on the way (M153)."""

from itertools import takewhile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tape.context.repair import repair
from tape.context.view import Target, view
from tape.formats.registry import FORMATS
from tape.model.entries import NO_JSON, Assistant, Opaque, Text
from tests.tape.formats.broken import broken, conversations
from tests.tape.formats.histories import TARGETS, emitted, histories, path, put, repaired
from tests.tape.formats.judge import faults, pairs, said
from tests.tape.making import BUDGET

SEARCH = settings(
    max_examples=25 * BUDGET, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
NAMES = sorted(FORMATS)
BEGINNING = "(The conversation continues.)"


def through(name, array, to=None):
    """Return an array as it comes out again, in the form of another API if need be."""
    form = FORMATS[to or name]
    return emitted(to or name, repaired(FORMATS[name].parse(array, put), Target("", form.api, "")))


def heard(name, array):
    """Return what was said; white space at the very end may not be sent."""
    texts = [text for text in said(name, array) if text != BEGINNING]
    return [*texts[:-1], *(text.rstrip() for text in texts[-1:])]


def _is_id(value):
    return isinstance(value, str) and 0 < len(value) <= 40


def whole(name, array):
    """Return the pairs whose ids can be sent as they are."""
    return {one: pair for one, pair in pairs(name, array).items() if _is_id(one)}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@SEARCH
@given(st.data())
def test_what_needs_no_mending_comes_out_as_it_came(name, data):
    array = data.draw(conversations(name))
    assert faults(name, array) == []
    assert through(name, array) == array


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@SEARCH
@given(st.data())
def test_what_is_broken_comes_out_whole(name, data):
    """M153: no call is without its result, and whole pairs and all words stay what they were."""
    array = data.draw(broken(name))
    sent = through(name, array)
    assert faults(name, sent) == []
    assert [one for one in FORMATS[name].check(sent) if "hologram" not in one.why] == []
    assert heard(name, sent) == heard(name, array)
    after = pairs(name, sent)
    assert {one: after.get(one) for one in whole(name, array)} == whole(name, array)
    assert through(name, sent) == sent


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@SEARCH
@given(st.data())
def test_any_other_api_can_go_on_with_it(name, data):
    to = data.draw(st.sampled_from(NAMES))
    sent = through(name, data.draw(broken(name)), to)
    assert faults(to, sent) == []
    assert [one for one in FORMATS[to].check(sent) if "hologram" not in one.why] == []
    assert through(to, sent) == sent


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@SEARCH
@given(st.data())
def test_what_was_sent_stays_at_the_beginning_but_for_results_that_came_late(name, data):
    """A prompt cache keeps its prefix: going on changes nothing before a result made up."""
    form = FORMATS[name]
    entries = path(form.parse(data.draw(broken(name)), put))
    target = Target("", form.api, "")
    before = repair(view(entries[: data.draw(st.integers(0, len(entries)))]), target)
    after = repair(view(entries), target)
    both = zip(before.messages, after.messages, strict=False)
    shared = sum(1 for _ in takewhile(lambda two: two[0] == two[1], both))
    if shared < len(before.messages):
        assert before.messages[shared].role == "tool"
        made_up = [one.call_id for one in before.repair.injected]
        assert before.messages[shared].call_id in made_up
    stable = form.encoder(None).elements(before.messages[:shared])[:-1]
    assert form.encoder(None).elements(before.messages)[: len(stable)] == stable
    assert form.encoder(None).elements(after.messages)[: len(stable)] == stable


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@SEARCH
@given(st.data())
def test_going_to_another_model_and_back_keeps_what_only_the_first_can_read(name, data):
    """Signatures and encrypted reasoning go to the same endpoint, api and model alone."""
    answers = [one for one in data.draw(histories(name)) if isinstance(one, Assistant)]
    said = [replace(one, stop_reason="stop") for one in answers]
    home = TARGETS[name]
    elsewhere = data.draw(
        st.sampled_from([*TARGETS.values(), replace(home, model="m"), replace(home, endpoint="")])
    )
    for target in (home, elsewhere, home):
        sent = [one for one in repaired(said, target) if one.role == "assistant"]
        own = [one for one in said if Target(one.endpoint, one.api, one.model) == target]
        assert _private(sent) == _private(own)


def _private(messages):
    """Return what of messages only one provider can read."""
    blocks = [block for message in messages for block in message.content]
    kept = [block for block in blocks if not isinstance(block, Text) or block.text.strip()]
    return [block for block in kept if isinstance(block, Opaque) or block.wire != NO_JSON]
