"""What the system prompt says of skills stays within its budget."""

from hypothesis import given
from hypothesis import strategies as st

from gong.skills.listing import MAX_DESCRIPTION_CHARS, choose_width, list_for_model
from gong.skills.skill import parse_skill


def make(name, description, trust="own", front=""):
    text = f"---\nname: {name}\ndescription: {description}\n{front}\n---\nx"
    return parse_skill(text, f"/s/{name}/SKILL.md", name, "user", trust)


def test_names_and_descriptions_are_listed():
    """M181: descriptions in the prompt; not of those that the model may not use."""
    hidden = make("hidden", "no", front="disable-model-invocation: true")
    listed = list_for_model([make("a", "does a"), hidden, make("b", "b", trust="new")], 100_000)
    assert listed.split("\n")[1:] == ["- a: does a"]
    assert list_for_model([hidden], 100_000) == ""


def test_long_descriptions_are_cut_to_one_percent_of_the_window():
    skills = [make("short", "one line"), *(make(f"s{n}", "word " * 400) for n in range(20))]
    listed = list_for_model(skills, 50_000)
    assert len(listed) <= 2_000
    assert "- short: one line" in listed
    assert all(f"- s{n}: word" in listed for n in range(20))
    huge = list_for_model([make("s", "w" * 3_000)], 1_000_000)
    assert len(huge.split("- s: ")[1]) <= MAX_DESCRIPTION_CHARS


def test_names_alone_are_listed_where_nothing_else_fits():
    skills = [make(f"skill-{n}", "word " * 40) for n in range(100)]
    listed = list_for_model(skills, 20_000)
    assert len(listed) <= 900
    assert "- skill-0\n" in listed
    assert " more, by the name that the user gives" in listed


@given(st.lists(st.integers(0, 2000), max_size=30), st.integers(-10, 20_000))
def test_cut_texts_fit_together(lengths, room):
    width = choose_width(lengths, room)
    assert sum(min(length, width) for length in lengths) <= max(room, 0)
    if sum(lengths) <= room:
        assert width == max(lengths, default=0)
