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


def test_cost_is_told_as_text_and_cut_in_every_way(here, spent):
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


def test_what_cannot_be_told_is_one_line(here, spent, home):
    assert "--all" in here("cost", "--all", "--by", "call", code=2).stderr
    assert "'zzzz'" in here("cost", "zzzz", code=3).stderr
    told = here("cost", "--all", "--store", str(home / "empty"))
    assert (told.stdout, "no model was called" in told.stderr) == ("", True)
