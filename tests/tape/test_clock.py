"""Time texts as numbers and back, those that other programs wrote and no calendar has."""

import time

import pytest

from tape.clock import (
    choose_entry_time,
    format_timestamp,
    is_valid_timestamp,
    parse_timestamp,
    render_time,
    show_times,
)
from tape.errors import Damaged

END = "9999-12-31T23:59:59.999999Z"
ODD = {
    "2027-02-31T00:00:00.000000Z": "2027-03-03T00:00:00.000000Z",
    "2026-11-22T25:61:61.000007Z": "2026-11-23T02:02:01.000007Z",
    "2026-13-00T00:00:00.000000Z": "2027-01-01T00:00:00.000000Z",
    "0000-00-00T00:00:00.000000Z": "0001-01-01T00:00:00.000000Z",
    "9999-99-99T99:99:99.999999Z": END,
}


@pytest.mark.parametrize("text", ["2026-11-22T00:00:00.000001Z", "2024-02-29T23:59:59.999999Z"])
def test_a_moment_is_a_number_and_back(text):
    assert is_valid_timestamp(text)
    assert format_timestamp(parse_timestamp(text)) == text


@pytest.mark.parametrize(("text", "moment"), ODD.items())
def test_a_time_that_never_was_is_the_moment_it_leads_to_and_never_before_it(text, moment):
    assert not is_valid_timestamp(text)
    assert format_timestamp(parse_timestamp(text)) == moment
    assert (
        format_timestamp(choose_entry_time(parse_timestamp(text), 0)) > text
        if moment != END
        else moment >= text[:4]
    )


@pytest.mark.parametrize("text", ["", "yesterday", "2026-11-22", "2026-11-22T00:00:00", "x" * 9000])
def test_what_is_no_time_is_the_first_moment(text):
    assert not is_valid_timestamp(text)
    assert format_timestamp(parse_timestamp(text)) == format_timestamp(0)


def test_an_entry_is_later_than_its_parent_with_any_clock():
    assert choose_entry_time(7, 3) == 8
    assert choose_entry_time(7, 9) == 9
    with pytest.raises(Damaged, match=r"nothing can follow the entry of 9999-12-31.*`tape fork`"):
        choose_entry_time(parse_timestamp(END), 0)


@pytest.mark.parametrize("zone", ["UTC0", "NPT-5:45", "LMT0:44:30", "EST5EDT,M3.2.0,M11.1.0"])
def test_local_times_are_those_of_the_zone_in_any_year(zone, monkeypatch):
    """Also of a zone that is not whole minutes from UTC, as all were long ago."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    with show_times(local=True):
        for seconds in range(1, 4_000_000_000, 37_000_123):
            wanted = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
            for _ in range(2):  # its minute is known the second time
                assert render_time(format_timestamp(seconds * 1_000_000 + 7)) == wanted
    monkeypatch.undo()
    time.tzset()
