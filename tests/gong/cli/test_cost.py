"""`gong cost`: the same sums however they are cut."""

import json

import pytest

from tape.index.library import open_store
from tape.model.entries import Assistant, Cost, Text, Usage, User
from tape.store.store import Beginning
from tests.gong.cli.inside import inside


@pytest.fixture
def here(home):
    return inside(home)


@pytest.fixture
def spent(home):
    """Two tapes of one folder: one whose calls told what they cost, one whose calls did not."""
    return [recorded(home, name, cost) for name, cost in (("known", 0.003), ("unknown", None))]


def recorded(home, name, cost):
    usage = Usage(input=1000, output=100, total=1100)
    price = None if cost is None else Cost("USD", cost)
    answer = Assistant((Text(text="ok"),), name, "", "", "m", usage=usage, cost=price)
    with (
        open_store(home / ".tape") as (store, _),
        store.create(Beginning(str(home), "test/1")) as tape,
        tape.writer() as writer,
    ):
        for payload in (User((Text(text=f"go {name}"),)), answer, answer):
            writer.append(payload)
        return tape.id


def test_cost_is_text_and_can_be_grouped_in_every_way(here, spent):
    """M183: gong cost [REF] [--by call|turn|branch|tape|provider|day] [--json]."""
    known, unknown = spent
    assert here("cost", known).stdout == (
        "Token Usage:\n  Input:  2,000 tokens\n  Output: 200 tokens\n  Total:  2,200 tokens\n"
        "Estimated Cost: $0.006\n"
    )
    assert here("cost").stdout.endswith("Estimated Cost: unknown (2 calls of unknown cost)\n")
    for by, rows in (("call", 2), ("turn", 1), ("branch", 1), ("tape", 1), ("provider", 1)):
        told = json.loads(here("cost", known, "--by", by, "--json").stdout)
        assert (told["by"], len(told["rows"])) == (by, rows)
        assert told["total"]["cost"] == pytest.approx(0.006)
        assert sum(row["total"] for row in told["rows"]) == told["total"]["total"] == 2200
    (turn,) = json.loads(here("cost", known, "--by", "turn", "--json").stdout)["rows"]
    assert turn["label"] == "go known"
    every = json.loads(here("cost", "--by", "tape", "--json").stdout)
    assert {row["key"] for row in every["rows"]} == {known, unknown}
    assert (every["total"]["cost"], every["total"]["unknown_calls"]) == (pytest.approx(0.006), 2)
    table = here("cost", "--all", "--by", "day").stdout.split("\n")
    assert table[-2].endswith("$0.006+ (2 calls of unknown cost)")


def test_a_failure_of_cost_is_one_line(here, spent, home):
    assert "--all" in here("cost", "--all", "--by", "call", code=2).stderr
    assert "'zzzz'" in here("cost", "zzzz", code=3).stderr
    told = here("cost", "--all", "--store", str(home / "empty"))
    assert (told.stdout, "no model was called" in told.stderr) == ("", True)


def spend(home, *calls, provider="anthropic", model="claude-opus-4-5"):
    """Record a session of so many calls: prompt, tokens read from the cache, dollars."""
    with (
        open_store(home / ".tape") as (store, _),
        store.create(Beginning(str(home), "test/1")) as tape,
        tape.writer() as writer,
    ):
        writer.append(User((Text(text="go"),)))
        for sent, read, dollars in calls:
            usage = Usage(input=sent, output=100, cache_read=read, total=sent + read + 100)
            price = Cost("USD", dollars)
            answer = Assistant((Text("ok"),), provider, "", "", model, usage=usage, cost=price)
            writer.append(answer)
        return tape.id


def test_hints_say_what_would_cost_less(here, home):
    """M228: long prompts, a cache that is not used, and a model for a half of the cost."""
    dear = spend(home, *[(150_000, 3_000, 0.75)] * 12)
    told = here("cost", dear).stdout.split("\n")
    hints = [line.removeprefix("Hint: ") for line in told if line.startswith("Hint: ")]
    assert hints[0].startswith("12 of 12 calls sent more than 100,000 tokens: /compact")
    assert hints[1].startswith("1 % of the input came from the provider's cache")
    assert "the tokens of anthropic/claude-opus-4-5 would cost about $" in hints[2]
    assert "instead of $9.00" in hints[2]
    assert hints[2].startswith("With anthropic/")
    assert json.loads(here("cost", dear, "--by", "turn", "--json").stdout)["hints"] == hints


@pytest.mark.parametrize(
    ("calls", "more"),
    [
        ([(150_000, 0, 0.75)] * 9, {}),
        ([(1_000, 0, 0.001)] * 12, {}),
        ([(1_000, 90_000, 0.5)] * 12, {"provider": "nobody", "model": "m"}),
    ],
    ids=["few calls", "little money", "well cached"],
)
def test_there_are_no_hints_where_nothing_is_to_be_saved(here, home, calls, more):
    """M228"""
    told = json.loads(here("cost", spend(home, *calls, **more), "--json").stdout)
    assert told["hints"] == []


WITHOUT_COST = [
    ("anthropic", "claude-sonnet-5-5", Cost("USD", 0.5)),
    ("anthropic", "claude-sonnet-5-5", None),
    ("bedrock", "us.anthropic.claude-sonnet-5-5", None),
    ("house", "unheard-of", None),
]


def test_calls_without_a_cost_on_their_tape_are_priced_by_their_tokens(here, home):
    """M183: what is known of tokens is priced, whoever wrote the tape: sums are the same."""
    usage = Usage(input=1000, output=100, total=1100)
    with (
        open_store(home / ".tape") as (store, _),
        store.create(Beginning(str(home), "test/1")) as tape,
        tape.writer() as writer,
    ):
        for provider, model, cost in WITHOUT_COST:
            text = (Text(text="ok"),)
            writer.append(User((Text(text="go"),)))
            writer.append(Assistant(text, provider, "", "", model, usage=usage, cost=cost))
    one = json.loads(here("cost", tape.id, "--json").stdout)["total"]
    assert one["cost"] == pytest.approx(0.5 + 0.003 + 0.0033)
    assert (one["calls"], one["unknown_calls"]) == (4, 1)
    every = json.loads(here("cost", "--all", "--by", "provider", "--json").stdout)
    assert every["total"] == one
    assert {row["key"]: row["cost"] for row in every["rows"]} == {
        "anthropic": pytest.approx(0.503),
        "bedrock": pytest.approx(0.0033),
        "house": None,
    }
