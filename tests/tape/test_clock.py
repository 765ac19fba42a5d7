"""Time texts as numbers and back, those that other programs wrote and no calendar has."""

import pytest

from tape.clock import choose_entry_time, format_timestamp, is_valid_timestamp, parse_timestamp
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


def test_an_entry_is_later_than_its_parent_whatever_the_clock_says():
    assert choose_entry_time(7, 3) == 8
    assert choose_entry_time(7, 9) == 9
    with pytest.raises(Damaged, match=r"nothing can follow the entry of 9999-12-31.*`tape fork`"):
        choose_entry_time(parse_timestamp(END), 0)
