"""Items of another SDK's session on a tape."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tape import Text, User, open_store
from tape.check.finding import Counts
from tape.check.verify import verify
from tape.errors import NotFound, UsageError
from tape.places.resolve import resolve_reference
from tape.stores.session_log import Item, SessionLog, list_sessions, require_package

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.just("$blob"), inner)
    ),
    max_leaves=6,
)


def said(text):
    return Item({"role": "user", "content": text}, (User((Text(text),)),))


def texts(log):
    return [one.value["content"] for one in log.read()]


def count_lines(folder, log):
    with open_store(folder) as (store, _), store.open(log.tape_id) as tape:
        return sum(1 for _ in tape.phases.read_all_lines())


def test_popping_and_clearing_leave_every_entry_on_the_tape(tmp_path):
    log = SessionLog(tmp_path, "openai-agents", "7")
    assert log.read() == []
    log.append([said("a"), said("b")])
    assert log.pop() == {"role": "user", "content": "b"}
    log.append([said("c")])
    assert texts(log) == ["a", "c"]
    log.clear()
    assert log.read() == []
    with pytest.raises(NotFound):
        log.pop()
    log.append([said("d")])
    assert texts(SessionLog(tmp_path, "openai-agents", "7")) == ["d"]
    lines = count_lines(tmp_path, log)
    assert lines >= 9  # start, and four items with their readings
    with open_store(tmp_path) as (store, _), store.open(log.tape_id) as tape:
        assert [*verify(tape, Counts())] == []


def test_a_session_is_a_ref_and_its_reading_can_be_searched(tmp_path):
    log = SessionLog(tmp_path, "openai-agents", "user-7")
    log.append([said("find the needle")])
    with open_store(tmp_path) as (store, index):
        hit = resolve_reference(store, index, "openai-agents:user-7", str(tmp_path))
        with hit.tape as tape:
            assert tape.title() == "find the needle"


@settings(max_examples=25, deadline=None)
@given(values=st.lists(JSON, min_size=1, max_size=4))
def test_every_json_value_comes_back_equal(tmp_path_factory, values):
    log = SessionLog(tmp_path_factory.mktemp("store"), "openai-agents", "x")
    log.append([Item(value) for value in values])
    assert repr([one.value for one in log.read()]) == repr(values)


def test_a_value_of_any_size_comes_back_equal(tmp_path):
    log = SessionLog(tmp_path, "openai-agents", "x")
    value = {"$blob": "é" * 70_000, "n": 10**30, "half": "\ud800"}
    log.append([Item(value), Item({"long": "x" * 200_000})])
    assert [one.value for one in log.read()] == [value, {"long": "x" * 200_000}]


def test_concurrent_writers_lose_nothing(tmp_path):
    with ThreadPoolExecutor(4) as pool:
        for done in [
            pool.submit(SessionLog(tmp_path, "openai-agents", "x").append, [said(str(n))])
            for n in range(12)
        ]:
            done.result()
    assert sorted(texts(SessionLog(tmp_path, "openai-agents", "x")), key=int) == [
        str(n) for n in range(12)
    ]
    assert [log.session for log in list_sessions(tmp_path, "openai-agents")] == ["x"]
    assert list_sessions(tmp_path, "langgraph") == []


def test_a_missing_extra_names_what_to_install():
    with pytest.raises(UsageError, match=r"pip install 'gong\[langgraph\]'"):
        require_package("no_such_package_here", "langgraph")


@pytest.mark.skipif(find_spec("langgraph") is not None, reason="the extra is installed")
def test_an_adapter_without_its_extra_says_what_to_install():
    with pytest.raises(UsageError, match=r"pip install 'gong\[langgraph\]'"):
        import_module("tape.stores.langgraph")
