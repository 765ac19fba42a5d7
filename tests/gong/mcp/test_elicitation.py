"""Forms of servers as questions, and answers as values."""

from __future__ import annotations

import mcp_types as types
import pytest

from gong.mcp.elicitation import answer_elicitation, build_question, read_form, read_values

FORM = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "title": "A text", "minLength": 2},
        "plain": {"type": "string", "enum": ["x", "y"], "default": "y"},
        "titled": {"type": "string", "oneOf": [{"const": "1", "title": "One"}]},
        "many": {"type": "array", "items": {"enum": ["p", "q"]}, "default": ["p"]},
        "titled_many": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
        "truth": {"type": "boolean", "default": False},
        "number": {"type": "number", "default": 1.5},
    },
    "required": ["text"],
}


def answered(**answers):
    fields = read_form(FORM)
    by_name = {one.name: build_question(one).question for one in fields}
    given = {by_name[name]: (a,) if isinstance(a, str) else a for name, a in answers.items()}
    return read_values(fields, given)


def test_defaults_apply_to_every_kind_of_field_that_has_one():
    assert answered(text="ab") == (
        {"text": "ab", "plain": "y", "many": ["p"], "truth": False, "number": 1.5},
        [],
    )


def test_titles_and_values_are_taken_as_the_value():
    values, wrong = answered(text="ab", titled="One", many=("p", "q"), titled_many=("A",))
    assert wrong == []
    assert (values["titled"], values["many"], values["titled_many"]) == ("1", ["p", "q"], ["a"])


@pytest.mark.parametrize(
    ("field", "answer", "said"),
    [
        ("text", "a", "text: it has 1 characters: give at least 2"),
        ("plain", "z", "plain: z is none of x, y"),
        ("truth", "maybe", "truth: say yes or no"),
    ],
)
def test_an_answer_that_does_not_fit_is_named(field, answer, said):
    assert answered(**{"text": "ab", field: answer})[1] == [said]


def test_a_required_field_needs_an_answer():
    assert answered()[1] == ["text needs an answer"]


class Person:
    """Answers each set of questions with the next words."""

    has_person = True

    def __init__(self, *rounds):
        self.rounds, self.asked = [*rounds], []

    async def ask(self, _question_id, questions):
        self.asked.append([one.question for one in questions])
        words = self.rounds.pop(0)
        if words is None:
            return None
        return {one.question: (word,) for one, word in zip(questions, words, strict=True)}


def form(**properties):
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    return types.ElicitRequestFormParams(message="What?", requested_schema=schema)


@pytest.mark.parametrize(
    ("rounds", "action", "content"),
    [
        ([None], "decline", None),
        ([["Decline"]], "decline", None),
        ([["Answer"], ["3"]], "accept", {"n": 3}),
        ([["Answer"], ["three"], ["3"]], "accept", {"n": 3}),
        ([["Answer"], ["a"], ["b"], ["c"]], "cancel", None),
        ([["Answer"], None], "cancel", None),
    ],
)
async def test_a_form_is_asked_until_it_fits(rounds, action, content):
    person = Person(*rounds)
    result = await answer_elicitation("s", form(n={"type": "integer"}), person, "c")
    assert (result.action, result.content) == (action, content)
    assert person.rounds == []


async def test_an_address_is_shown_and_not_opened():
    person = Person(["Answer"])
    params = types.ElicitRequestURLParams(message="Log in", url="http://h/x", elicitation_id="1")
    assert (await answer_elicitation("s", params, person, "c")).action == "accept"
    assert person.asked == [
        ["The MCP server s asks: Log in – open http://h/x in a browser, then answer here"]
    ]
