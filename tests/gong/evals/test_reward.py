"""Rewards: a number from 0 to 1, and everything else that tests write."""

from __future__ import annotations

import pytest

from gong.evals.reward import RewardFault, parse_reward_json, parse_reward_text


@pytest.mark.parametrize(
    ("text", "reward"), [("1", 1), ("0\n", 0), (" 0.5 ", 0.5), ("1e-3", 0.001), ("1.0", 1)]
)
def test_a_number_is_a_reward(text: str, reward: float) -> None:
    assert parse_reward_text(text.encode()) == reward


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b" \n", b"nan", b"inf", b"-inf", b"-0.1", b"1.0001", b"2", b"yes", b"1 1", b"1,0"),
        *(b"\xff", b"1" * 70_000, b"\0", b"true"),
    ],
)
def test_other_texts_are_no_reward(data: bytes) -> None:
    with pytest.raises(RewardFault):
        parse_reward_text(data)


@pytest.mark.parametrize(
    ("text", "reward"),
    [('{"reward": 1}', 1), ('{"a": 1, "b": 0.25}', 0.25), ('{"reward": 0.5, "speed": 0}', 0.5),
     ("1", 1), ("0.5", 0.5)],
)  # fmt: skip
def test_json_names_a_reward(text: str, reward: float) -> None:
    assert parse_reward_json(text.encode()) == reward


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "{}", "[]", "null", "true", '"1"', '{"reward": "1"}', '{"reward": true}'),
        *('{"reward": NaN}', '{"reward": Infinity}', '{"reward": 2}', '{"reward": -1}', "NaN"),
        *('{"reward": [1]}', "[" * 50_000, '{"reward": 1' + "0" * 400 + "}"),
    ],
)
def test_other_json_is_no_reward(text: str) -> None:
    with pytest.raises(RewardFault):
        parse_reward_json(text.encode())
