"""Any payload of any type is written and read back as it was."""

import types
from typing import Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw, Struct

from tape.clock import format_timestamp
from tape.model.entries import NO_JSON, PAYLOADS
from tape.model.line import build_entry, decode_line, encode_line, encode_payload, verify_line
from tests.tape.making import BUDGET

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
LEAVES = {
    str: st.text() | st.text('😀a\u2028\x00"\\\ud7ff', max_size=5),
    int: st.integers(0, 2**60),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    type(None): st.none(),
    msgspec.UnsetType: st.just(msgspec.UNSET),
    Raw: JSON.map(msgspec.json.encode).map(Raw),
}


def of(kind):
    """Return a strategy for values of a type that stands in a payload."""
    if kind in LEAVES:
        return LEAVES[kind]
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return st.one_of(map(of, args))
    if origin is tuple:
        return st.lists(of(args[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(of(args[0]), of(args[1]), max_size=3)
    if origin is Literal:
        return st.sampled_from(args)
    return st.deferred(lambda: struct(kind))


def struct(kind):
    assert issubclass(kind, Struct)
    hints = get_type_hints(kind)
    required, optional = {}, {}
    for field in msgspec.structs.fields(kind):
        found = of(hints[field.name])
        if field.default is NO_JSON:
            found |= st.just(NO_JSON)
        (required if field.required else optional)[field.name] = found
    return st.fixed_dictionaries(required, optional=optional).map(lambda given: kind(**given))


@pytest.mark.slow
@pytest.mark.parametrize("kind", PAYLOADS)
@settings(max_examples=25 * BUDGET)
@given(draws=st.data())
def test_every_payload_comes_back(kind, draws):
    payload = draws.draw(struct(PAYLOADS[kind]))
    data = encode_payload(payload)
    header, line = encode_line(kind, None, 0, format_timestamp(0), data)
    assert line.count(b"\n") == 1
    assert verify_line(line[:-1]) == header
    assert decode_line(line[:-1]) == build_entry(header, payload)
    assert encode_payload(decode_line(line[:-1]).data) == data
