"""Times on a screen and on a command line: local, or UTC with --utc; in JSON as on the tape."""

from __future__ import annotations

import re

import pytest

from tape.clock import parse_timestamp, render_time, show_times
from tests.tape import making

SHOWN = re.compile(r"2026-11-2\d \d\d:\d\d(?::\d\d)?")
ZONE = "XYZ-3"
"""Three hours before UTC, in the words of TZ: 23:30 UTC is 02:30 of the next day."""


@pytest.fixture
def late(tape):
    """A tape of 23:30 UTC, a branch, a label and a file in the trash: its id."""
    store = making.store_in(tape.store, lambda: parse_timestamp("2026-11-20T23:30:00.000000Z"))
    with store.create(making.beginning("late")._replace(cwd=str(tape.work))) as made:
        making.write(made, "zebra")
        return made.id


@pytest.mark.parametrize(
    "verb", ["show", "branches", "log", "cat", "tail", "status", "search zebra", "anchors"]
)
def test_times_are_local_or_utc_in_one_form(tape, late, verb):
    tape.env["TZ"] = ZONE
    for options, day in [((), "2026-11-21 02:30"), (("--utc",), "2026-11-20 23:30")]:
        found = SHOWN.findall(tape.real(*verb.split(), *options).text)
        assert found
        assert {time[:16] for time in found} == {day}
    assert tape.real("--utc", *verb.split()).text == tape.real(*verb.split(), "--utc").text
    if verb not in {"show", "anchors"}:
        assert "2026-11-20T23:30:00.0000" in tape.real(*verb.split(), "--json").text


def test_typed_times_are_of_the_same_zone(tape, late):
    tape.env["TZ"] = ZONE
    for verb in (["ls"], ["search", "zebra"], ["log", "--type", "user"]):
        for time, options, is_found in [
            ("2026-11-21T02:29", (), True),
            ("2026-11-21T02:31", (), False),
            ("2026-11-20T23:29", ("--utc",), True),
            ("2026-11-20T23:31", ("--utc",), False),
            ("2026-11-20T23:31Z", (), False),
            ("2026-11-21T02:29+03:00", ("--utc",), True),
        ]:
            for more in ((), ("--no-pager",)):  # the short way and the long one
                words = (*verb, "--since", time, *options, *more, "--json")
                found = tape.real(*words, code=None).json
                assert bool(found) == is_found, (verb, time, options)


def test_pages_for_others_are_in_utc(tape, late):
    tape.env["TZ"] = ZONE
    for verb in (["cat", "--md"], ["export", "--to", "md"]):
        text = tape.real(*verb).text
        assert "2026-11-20 23:30" in text
        assert "2026-11-21" not in text


def test_an_invalid_time_is_shown_unchanged():
    with show_times(local=True):
        assert render_time("no time at all, of any kind") == "no time at all, of "
        assert render_time("9999-12-31T23:59:59.999999Z").startswith(("9999-12-31", "10000"))
