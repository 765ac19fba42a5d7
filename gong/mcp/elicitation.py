"""What a server asks the person at the session: its form as questions, and the answers as values.

    asked                     told to the server
    ------------------------  --------------------------------------------------------------
    no person at the session  decline
    the person says Decline   decline
    no answer in time         cancel
    a form, answered          accept, with a value for each field: what was answered, else its
                              default; a field with neither is left out
    an address, opened        accept; gong shows the address and never opens it by itself

A form is a flat JSON Schema: texts, numbers, truth values, and choices of one or of several, with
titles or without (SEP-1330). Answers that do not fit their field are asked for again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import mcp_types as types

from ..tools.dialogue import MAX_OPTIONS, Question, QuestionOption

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..tools.dialogue import Dialogue

ACCEPT, DECLINE, SKIP = "Answer", "Decline", "(leave out)"
_MAX_ROUNDS = 3
"""How often a form is asked in all until it fits."""
_TRUTHS = {"yes": True, "true": True, "y": True, "no": False, "false": False, "n": False}


class FormField(NamedTuple):
    """One field of a form."""

    name: str
    schema: Mapping[str, Any]
    is_required: bool
    choices: Mapping[str, Any]
    """Values by what a person sees of them; empty for a free answer."""
    takes_many: bool

    @property
    def has_default(self) -> bool:
        """Whether its schema gives a value that holds without an answer."""
        return "default" in self.schema


def read_form(schema: Mapping[str, Any]) -> tuple[FormField, ...]:
    """Return the fields of a form."""
    required = schema.get("required") or ()
    return tuple(
        FormField(name, field, name in required, *_read_choices(field))
        for name, field in (schema.get("properties") or {}).items()
        if isinstance(field, dict)
    )


def _read_choices(field: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the values to choose from by their titles, and whether several may be chosen."""
    many = field.get("type") == "array"
    held = (field.get("items") or {}) if many else field
    titled = held.get("oneOf") or held.get("anyOf") or ()
    if titled:
        return {
            str(choice.get("title", choice.get("const"))): choice.get("const") for choice in titled
        }, many
    values = held.get("enum") or ()
    names = field.get("enumNames") or values
    if len(names) == len(values):
        return {str(name): value for name, value in zip(names, values, strict=True)}, many
    return {str(value): value for value in values}, many


def build_question(field: FormField) -> Question:
    """Return the question for a field; its text is the field's name, which no other has."""
    schema = field.schema
    about = " ".join(str(schema[key]) for key in ("title", "description") if schema.get(key))
    limits = _describe_limits(field)
    text = f"{field.name}{f': {about}' if about else ''}{f' ({limits})' if limits else ''}"
    labels = [*field.choices] or (["yes", "no"] if schema.get("type") == "boolean" else [])
    if len(labels) >= MAX_OPTIONS:  # too many to list: they are named in the text
        text, labels = f"{text} – one of {', '.join(labels)}", []
    options = [QuestionOption(label) for label in labels]
    if field.has_default:
        options.append(QuestionOption(SKIP, f"then it is {_show_default(field)}"))
    elif not field.is_required:
        options.append(QuestionOption(SKIP))
    return Question(text, tuple(options), multi_select=field.takes_many)


def _describe_limits(field: FormField) -> str:
    schema, parts = field.schema, []
    kind = schema.get("type")
    if kind in {"number", "integer"}:
        parts.append(str(kind))
    parts += [
        f"{word} {schema[key]}"
        for key, word in (
            ("format", "a"),
            ("minimum", "at least"),
            ("maximum", "at most"),
            ("minLength", "characters: at least"),
            ("maxLength", "characters: at most"),
        )
        if key in schema
    ]
    return ", ".join(parts)


def _show_default(field: FormField) -> str:
    default = field.schema["default"]
    by_value = {str(value): label for label, value in field.choices.items()}
    many = default if isinstance(default, list) else [default]
    return ", ".join(by_value.get(str(value), str(value)) for value in many)


def read_values(
    fields: Sequence[FormField], answers: Mapping[str, Sequence[str]]
) -> tuple[dict[str, Any], list[str]]:
    """Return the values of a form, and what is wrong with the answers, one text for each field.

    `answers` are by the text of the questions.
    """
    values: dict[str, Any] = {}
    wrong: list[str] = []
    for field in fields:
        texts = [text for text in answers.get(build_question(field).question, ()) if text != SKIP]
        if not texts:
            if field.has_default:
                values[field.name] = field.schema["default"]
            elif field.is_required:
                wrong.append(f"{field.name} needs an answer")
            continue
        try:
            read = [_read_value(field, text) for text in texts]
        except ValueError as error:
            wrong.append(f"{field.name}: {error}")
            continue
        values[field.name] = read if field.takes_many else read[0]
    return values, wrong


def _read_value(field: FormField, answer: str) -> Any:
    """Return one answer as a value of its field; raises ValueError where it does not fit."""
    schema, answer = field.schema, answer.strip()
    if field.choices:
        by_word = {str(value): value for value in field.choices.values()} | {**field.choices}
        if answer not in by_word:
            raise ValueError(f"{answer} is none of {', '.join(field.choices)}")
        return by_word[answer]
    match schema.get("type"):
        case "boolean":
            if answer.lower() not in _TRUTHS:
                raise ValueError("say yes or no")
            return _TRUTHS[answer.lower()]
        case "integer" | "number" as kind:
            value = int(answer) if kind == "integer" else float(answer)
            low, high = schema.get("minimum", value), schema.get("maximum", value)
            if not low <= value <= high:
                raise ValueError(f"{answer} is not between {low} and {high}")
            return value
        case _:
            least, most = schema.get("minLength", 0), schema.get("maxLength", float("inf"))
            if not least <= len(answer) <= most:
                limits = f"at least {least}" if len(answer) < least else f"at most {most}"
                raise ValueError(f"it has {len(answer)} characters: give {limits}")
            return answer


async def answer_elicitation(
    server: str, params: types.ElicitRequestParams, dialogue: Dialogue | None, question_id: str
) -> types.ElicitResult:
    """Ask the person what a server wants to know, and return the answer for it."""
    if dialogue is None:
        return types.ElicitResult(action="decline")
    if isinstance(params, types.ElicitRequestURLParams):
        about = f"{params.message} – open {params.url} in a browser, then answer here"
        return await _ask_consent(server, about, dialogue, question_id)
    fields = read_form(params.requested_schema)
    consent = await _ask_consent(server, params.message, dialogue, question_id)
    if consent.action != "accept":
        return consent
    values: dict[str, Any] = {}
    remarks: list[str] = []
    open_fields = fields
    for _ in range(_MAX_ROUNDS):
        if not open_fields:
            break
        header = "; ".join(remarks) or server
        questions = [_set_header(build_question(field), header) for field in open_fields]
        answers = await dialogue.ask(question_id, questions)
        if answers is None:
            return types.ElicitResult(action="cancel")
        accepted, remarks = read_values(open_fields, answers)
        values |= accepted
        named = {remark.partition(":")[0].partition(" needs")[0] for remark in remarks}
        open_fields = tuple(field for field in open_fields if field.name in named)
    if open_fields:
        return types.ElicitResult(action="cancel")
    return types.ElicitResult(action="accept", content=values)


def _set_header(question: Question, header: str) -> Question:
    return Question(question.question, question.options, header, question.multi_select)


async def _ask_consent(
    server: str, message: str, dialogue: Dialogue, question_id: str
) -> types.ElicitResult:
    """Ask whether a server gets an answer at all."""
    text = f"The MCP server {server} asks: {message}"
    options = (QuestionOption(ACCEPT), QuestionOption(DECLINE))
    answers = await dialogue.ask(question_id, [Question(text, options)])
    if answers is None:
        return types.ElicitResult(action="decline")
    answer = " ".join(answers.get(text, ())).strip().lower()
    accepted = answer in {ACCEPT.lower(), "yes", "y", "ok", "accept"}
    return types.ElicitResult(action="accept" if accepted else "decline")
