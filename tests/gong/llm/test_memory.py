"""The offline model asked for what was said before, and for a summary."""

import json
import random

import pytest
from msgspec import Raw

from gong.llm.accumulate import StreamAccumulator
from gong.llm.offline.provider import HELP, OfflineProvider
from gong.llm.types import Request, ToolSpec
from gong.summary.parse import validate_summary
from gong.summary.prompt import build_pieces, build_summary_prompt
from gong.summary.transcript import TranscriptPiece
from gong.summary.verbatim import SummaryFolders, complete_summary
from tape.context.view import Message
from tape.model.entries import Assistant, Summary, Text, ToolCall, User
from tape.model.line import Entry
from tape.model.summary import render_summary

SEARCH = ("tape_search",)


def user(text):
    return Message("user", (Text(text),))


async def answer_to(*messages, tools=(), system=""):
    specs = tuple(ToolSpec(name, "", Raw(b"{}")) for name in tools)
    answer = StreamAccumulator("c_00000000")
    asked = Request(model="rules", messages=messages, tools=specs, system=system)
    async for event in OfflineProvider().stream(asked):
        answer.process(event)
    return answer.response()


async def chat(*prompts, tools=()):
    """Play prompts one after the other and return the last answer."""
    messages = []
    for prompt in prompts:
        messages.append(user(prompt))
        answer = await answer_to(*messages, tools=tools)
        messages.append(Message("assistant", answer.content))
    return answer


TALK = (
    "remember that the staging port is 8143",
    "The code word is BLUE-HERON.",
    "Our colleague Ingrid owns the billing service. Ask her.",
    "note: we deploy on Thursdays",
    "请记住数据库的暗号是青松",
    "tell me a joke",
    "check the staging port and the code word again",
)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("what is the code word?", "You said, 6 prompts ago: “The code word is BLUE-HERON.”"),
        (
            "which port did I say?",
            "You said, 7 prompts ago: “remember that the staging port is 8143”",
        ),
        (
            "what did I tell you about Ingrid",
            "You said, 5 prompts ago: “Our colleague Ingrid owns the billing service.”",
        ),
        (
            "Who owns billing?",
            "You said, 5 prompts ago: “Our colleague Ingrid owns the billing service.”",
        ),
        ("when do we deploy?", "You said, 4 prompts ago: “note: we deploy on Thursdays”"),
        ("数据库的暗号是什么？", "You said, 3 prompts ago: “请记住数据库的暗号是青松”"),
        ("tell me the code word", "You said, 6 prompts ago: “The code word is BLUE-HERON.”"),
        (
            "What is the code word, and when do we deploy?",
            """\
You said, 6 prompts ago: “The code word is BLUE-HERON.”
You said, 4 prompts ago: “note: we deploy on Thursdays”""",
        ),
        (
            "what is the weather?",
            "I found nothing about “what is the weather?” in what was said here.",
        ),
    ],
)
async def test_a_question_is_answered_with_the_sentence_that_says_it(question, answer):
    assert (await chat(*TALK, question)).text == answer


async def test_what_is_to_be_remembered_is_noted_in_one_line():
    assert (await chat("Please remember that x is 1.")).text == "Noted: x is 1."
    assert (await chat("remember a\nand b\nread c")).text.startswith("Noted: a; and b\nI could not")
    assert (await chat("x", "note: a is b\nwhat is a?")).text.startswith("Noted: a is b\n")


async def test_the_newest_of_two_facts_counts():
    first = ("remember that the port is 1", "The port is 3.")
    later = "remember that the port is 2 now"
    assert "port is 2 now" in (await chat(*first, later, "what is the port?")).text
    assert "port is 1" in (await chat(*first, "what is the port?")).text


async def test_its_own_answers_and_earlier_questions_are_no_source():
    asked = ("what is the code word?",) * 3
    assert (await chat("x is y", *asked)).text.startswith("I found nothing about")
    assert "3 prompts ago" in (await chat("The code word is z.", *asked)).text


async def test_a_question_without_earlier_statements_gets_the_help():
    assert (await chat("what is the weather?", tools=SEARCH)).text == HELP
    assert (await chat("hello", "tell me a joke")).text == HELP


ANCHOR = Summary(
    goal="Ship the release",
    constraints=("Never push to main.",),
    done=("what is the tag? → I found nothing.",),
    critical_context=("The tag is v3.2.1", "The agent said: The tag of old was v1"),
    requests=("read a.txt", "remember that the lead is Ingrid"),
)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (
            "what is the tag?",
            "The summary of what came before says, under critical context: “The tag is v3.2.1”",
        ),
        ("who is the lead?", "You said, before the summary: “remember that the lead is Ingrid”"),
        (
            "what is the goal?",
            "The summary of what came before says, under goal: “Ship the release”",
        ),
    ],
)
async def test_a_summary_answers_too(question, answer):
    summary = user(render_summary(ANCHOR))
    assert (await answer_to(summary, user("list"), user(question))).text == answer
    both = Message("user", (*summary.content, Text(question)))
    assert (await answer_to(both)).text == answer


async def test_earlier_statements_out_of_view_are_looked_up_on_the_tape():
    talk = [user("hello"), Message("assistant", (Text("hi"),)), user("what is the code word?")]
    answer = await answer_to(*talk, tools=SEARCH)
    (call,) = answer.tool_calls
    assert (call.name, json.loads(bytes(call.args))) == ("tape_search", {"query": "code word"})
    shown = (
        "1a2b3c4d5e6f  2026-01-02 03:04  user: what is the code word?\n"
        "2a2b3c4d5e6f  2026-01-02 03:04  assistant: I know the code word: it is OLD.\n"
        "3a2b3c4d5e6f  2026-01-01 03:04  user: … the code word is BLUE-HERON. Then …\n"
        "[tape_read ENTRY shows one in full]"
    )
    result = Message("tool", (Text(shown),), call.id, call.name)
    said = (await answer_to(*talk, Message("assistant", answer.content), result, tools=SEARCH)).text
    assert said == "Entry 3a2b3c4d5e6f of the tape says: “… the code word is BLUE-HERON.”"
    none = Message("tool", (Text("No entry of this tape has these words."),), call.id, call.name)
    said = (await answer_to(*talk, Message("assistant", answer.content), none, tools=SEARCH)).text
    assert said == "I found nothing about “what is the code word?” in what was said here."


async def test_half_an_answer_is_no_reason_not_to_search():
    talk = (user("The api port is 80."), user("what is the staging port?"))
    assert "api port" in (await answer_to(*talk)).text
    assert (await answer_to(*talk, tools=SEARCH)).tool_calls


async def test_a_place_is_recalled_from_an_earlier_statement():
    talk = (user("The staging server is in Oslo."), user("where is the staging server?"))
    tools = ("grep",)
    assert "Oslo" in (await answer_to(*talk, tools=tools)).text
    (call,) = (await answer_to(talk[1], tools=tools)).tool_calls
    assert call.name == "grep"


def called(number, command):
    args = Raw(json.dumps({"command": command}).encode())
    call = ToolCall(id=f"c{number}", name="bash", args=args)
    return (
        Message("assistant", (call,)),
        Message("tool", (Text(f"out {command}"),), call.id, "bash"),
    )


async def test_a_turn_cut_by_a_compaction_continues_where_it_was():
    """M156: a cut inside a turn leaves its request in the summary only."""
    request = "run a then run b then run c"
    summary = user(render_summary(Summary(goal="x", requests=("list", request))))
    kept = called(2, "b")
    (call,) = (await answer_to(summary, *kept, tools=("bash",))).tool_calls
    assert json.loads(bytes(call.args)) == {"command": "c"}
    said = (await answer_to(summary, *kept, *called(3, "c"), tools=("bash",))).text
    assert said == "`b` printed: out b\n`c` printed: out c"
    assert "has to be asked again" in (await answer_to(summary, tools=("bash",))).text


ASKED = {
    "remember that the staging port is 8143": ("which port does staging use?", "8143"),
    "The code word is BLUE-HERON.": ("what is the code word?", "BLUE-HERON"),
    "Customers in Norway pay in kroner.": ("how do customers in Norway pay?", "kroner"),
    "we decided to use Redis for the queue": ("which queue did we decide on?", "Redis"),
    "Never push to main directly.": ("may I push to main?", "Never"),
    "For the record: invoices are due after 14 days.": ("when are invoices due?", "14 days"),
    "项目代号叫青松": ("项目的代号是什么？", "青松"),
}
NOISE = (
    *("read file_{0}.txt", "run echo step {0}", "what is in box {0}?", "think about issue {0}"),
    *("The report for week {0} looks fine to me.", "summarise chapter {0} of the book"),
)


@pytest.mark.parametrize("planted", [0, 2])
async def test_facts_are_known_after_five_compactions(planted):
    """M157: planted early, asked for late, with nothing but the newest summary before it."""
    chance, summary = random.Random(planted), None
    for number in range(5):
        prompts = [chance.choice(NOISE).format(number * 60 + n) for n in range(60)]
        if number == planted:
            for fact in ASKED:
                prompts.insert(chance.randrange(60), fact)
        payloads = []
        for prompt in prompts:
            answer = await answer_to(user(prompt), tools=())
            payloads += [User((Text(prompt),)), Assistant(answer.content)]
        entries = [Entry(f"{n:040x}", 1, None, n, "", "", one) for n, one in enumerate(payloads)]
        shown = build_pieces(entries, summary)
        asked = build_summary_prompt(shown, budget_chars=100_000, answer_chars=2500)
        told = validate_summary((await answer_to(user(asked.user), system=asked.system)).text)
        summary = complete_summary(
            told, entries, summary, folders=SummaryFolders("/w"), limit_chars=1000
        )
    before = user(render_summary(summary))
    for question, answer in ASKED.values():
        assert answer in (await answer_to(before, user("list"), user(question))).text
    assert len(render_summary(summary)) < 4000


async def test_asked_for_a_summary_it_gives_one_that_is_read_back():
    """M157, M160: the offline model is a summariser like any other."""
    said = [
        TranscriptPiece("user", "Ship it. Never push to main."),
        TranscriptPiece("assistant", "It is shipped."),
        TranscriptPiece("user", "remember that the tag is v3.2.1"),
        TranscriptPiece("assistant", "Noted: the tag is v3.2.1"),
        TranscriptPiece("user", "tell me a joke"),
        TranscriptPiece("assistant", HELP),
    ]
    asked = build_summary_prompt(said, focus="the tag", budget_chars=10_000, answer_chars=900)
    answer = await answer_to(user(asked.user), system=asked.system, tools=("bash",))
    assert len(answer.text) <= 900
    summary = validate_summary(answer.text)
    assert summary.goal == "Ship it. Never push to main."
    assert summary.constraints == ("Never push to main.",)
    assert summary.critical_context == ("remember that the tag is v3.2.1",)
    assert summary.done[-1] == "tell me a joke → I did not understand that."
