"""Recall on real tapes: what compactions covered and origins hold is found and read again."""

import json

import pytest
from msgspec import Raw
from msgspec.structs import replace

from gong.context.tape_search import PAGE_CHARS, TapeRecall
from gong.env.local import LocalEnvironment
from gong.tools import session_tools
from gong.tools.registry import ToolRegistry
from gong.tools.tool import PreparedCall, ToolContext, ToolOutcome
from tape.damage import DamageWarning
from tape.errors import Ambiguous, NotFound, UsageError
from tape.model.entries import Anchor, Assistant, Context, Summary, Text, ToolCall, User, join_texts
from tape.model.entries import ToolResult as Result
from tests.tape.making import beginning, say, store_in

REGISTRY = ToolRegistry((*session_tools.RECALL_TOOLS, session_tools.COMPACT_TOOL))


@pytest.fixture
def store(tmp_path):
    return store_in(tmp_path / "store")


def answer(text, *calls):
    blocks = (
        ToolCall(id=f"c{at}", name=name, args=Raw(json.dumps(args).encode()))
        for at, (name, args) in enumerate(calls)
    )
    return Assistant((Text(text=text), *blocks))


def result(text, *, name="bash", full=None):
    return Result("c0", name, (Text(text=text),), full=full)


def compaction(text="all that was said"):
    return Anchor(kind="compaction", summary=Summary(goal=text))


@pytest.fixture
def tape(store):
    """A tape on which a compaction covers the beginning."""
    with store.create(beginning()) as tape:
        yield tape


def recorded(tape, *payloads):
    with tape.writer() as writer:
        return [
            writer.anchor(one) if isinstance(one, Anchor) else writer.append(one)
            for one in payloads
        ]


def recall_of(tape):
    return TapeRecall(tape, tape.head)


def found(tape, query, limit=10):
    return [one.entry for one in recall_of(tape).search(query, limit)]


@pytest.fixture
async def use(tmp_path):
    """Run a call all the way through a registry."""
    env = LocalEnvironment(str(tmp_path), {})

    async def use(name, memory=None, asked=None, **arguments):
        call = ToolCall(id="c1", name=name, args=Raw(json.dumps(arguments).encode()))
        prepared = REGISTRY.prepare(call)
        assert isinstance(prepared, PreparedCall), prepared
        context = ToolContext(env, "c1", print, tape=memory, request_compaction=asked)
        return await REGISTRY.run(prepared, context)

    yield use
    await env.cleanup()


async def test_what_a_compaction_covered_is_found_and_read_again(tape, use):
    """M164: the model can recall what a summary has replaced."""
    fact, _, called, output, *_ = recorded(
        tape,
        say("remember that the staging port is 8143"),
        answer("Noted."),
        answer("I look.", ("bash", {"command": "grep -rn TIMEOUT_MS src"})),
        result("[cut]", full="line\n" * 30_000 + "src/db.py:4: TIMEOUT_MS = 5150\n"),
        compaction(),
        say("go on"),
        answer("Going on."),
        compaction("a second one"),
        say("which port was it for staging?"),
    )
    memory = recall_of(tape)
    said = join_texts((await use("tape_search", memory, query="staging port")).content)
    assert said.split("\n")[0].startswith(fact.id[:12])
    assert "remember that the staging port is 8143" in said.split("\n")[0]
    assert found(tape, "timeout_ms")[0] == called.id
    assert output.id in found(tape, "5150")
    read = join_texts((await use("tape_read", memory, entry=fact.id[:8])).content)
    assert read.split("\n")[1:] == ["remember that the staging port is 8143"]
    assert fact.id[:12] in read


def test_rare_words_come_before_frequent_ones_and_newer_before_older(tape):
    noise = [say(f"the port of server {n}") for n in range(30)]
    old, _, new, *_ = recorded(
        tape, say("zebra harbour"), answer("ok"), say("zebra harbour"), *noise, say("now")
    )
    assert found(tape, "zebra port", 3)[:2] == [new.id, old.id]
    assert len(found(tape, "port", 7)) == 7


def test_the_prompt_that_is_being_answered_is_no_answer(tape):
    fact, question = recorded(tape, say("The code word is heron."), say("what is the code word?"))
    assert found(tape, "code word") == [fact.id, question.id]
    assert found(tape, "what is the code word?")[0] == fact.id


def test_calls_of_the_recall_tools_are_not_found_again(tape):
    fact, *_ = recorded(
        tape,
        say("the owner is Ada"),
        answer("", ("tape_search", {"query": "owner"})),
        result("123  the owner is Ada", name="tape_search"),
        say("x"),
    )
    assert found(tape, "owner") == [fact.id]


def test_words_are_found_however_they_are_written(tape):
    entries = recorded(
        tape,
        say("We deploy to Ports 80 and read_file is slow"),
        say("请记住暂存端口是八千 密码在保险箱里"),
        Context("user", "steering", (Text(text="use the Élan branch instead"),)),
        answer("", ("edit", {"path": "a.py", "newText": "naïve = 1\nrésumé = 2"})),
        say("end"),
    )
    english, chinese, steering, called, _ = entries
    for query, expected in [
        ("PORT", english),
        ("read_file", english),
        ('"and read_file"', english),
        ("暂存端口", chinese),
        ("保险箱在哪里", chinese),
        ("élan", steering),
        ("résumé", called),
    ]:
        assert found(tape, query)[:1] == [expected.id], query
    assert found(tape, "eploy") == []
    assert found(tape, '"read and"') == []


async def test_a_query_without_words_and_one_without_hits_say_what_to_do(tape, use):
    recorded(tape, say("hello"))
    with pytest.raises(UsageError, match="give a word or a number"):
        recall_of(tape).search("?!", 3)
    wrong = await use("tape_search", recall_of(tape), query=" ")
    assert wrong.is_error
    nothing = await use("tape_search", recall_of(tape), query="unicorn")
    assert (nothing.is_error, "other words" in join_texts(nothing.content)) == (False, True)


def test_only_this_branch_and_its_origins_are_looked_at(store, tape):
    base, _ = recorded(tape, say("the tide is high"), answer("yes"))
    (hit,) = tape.find_entry(base.id)
    tape.fork(hit.head, "other")
    with tape.writer("other") as writer:
        other = writer.append(say("the tide is low"))
    assert found(tape, "tide") == [base.id]
    with pytest.raises(NotFound, match="tape_search"):
        recall_of(tape).read(other.id[:12])
    with store.create(beginning(), (tape, hit.head)) as child:
        newer = recorded(child, answer("a tide"), say("x"))[0]
        assert set(found(child, "tide")) == {base.id, newer.id}
        assert "the tide is high" in recall_of(child).read(base.id[:8])


def test_long_output_is_read_page_by_page_and_nothing_is_lost(tape):
    whole = "".join(f"line {n:05d}\n" for n in range(3_000))
    (entry, _) = recorded(tape, result("[cut]", full=whole), say("x"))
    memory, offset, parts = recall_of(tape), 0, []
    while True:
        heading, *page = memory.read(entry.id[:8], offset=offset).split("\n")
        assert entry.id[:12] in heading
        parts.append("\n".join(page[:-1]))
        if "continue with offset" not in page[-1]:
            break
        offset += PAGE_CHARS
        assert f"continue with offset {offset}]" in page[-1]
    assert [line.strip() for line in "".join(parts).split("\n")] == whole.strip().split("\n")
    assert "there are none from 9999999 on" in memory.read(entry.id[:8], offset=9_999_999)


def test_the_entries_around_are_shown_and_cut(tape):
    entries = recorded(
        tape, say("one"), answer("two"), say("three"), result("x" * 5_000), say("five"), say("six")
    )
    read = recall_of(tape).read(entries[2].id, before=1, after=2)
    places = [read.find(text) for text in ("two", "three", "xxx", "3000 characters more", "five")]
    assert places == sorted(places)
    assert -1 not in places
    assert "one" not in read
    assert "six" not in read
    assert f"tape_read {entries[3].id[:12]}" in read


async def test_an_id_that_means_nothing_or_too_much_is_an_error_that_says_what_to_do(tape, use):
    entries = recorded(tape, *(say(f"{n}") for n in range(700)))
    by_prefix = {}
    for entry in entries:
        by_prefix.setdefault(entry.id[:4], []).append(entry)
    memory = recall_of(tape)
    double = [prefix for prefix, those in by_prefix.items() if len(those) > 1]
    for prefix in double[:1]:
        with pytest.raises(Ambiguous, match=by_prefix[prefix][1].id[:12]):
            memory.read(prefix)
    for entry in ("zz", "abc", "0" * 40):
        failed = await use("tape_read", memory, entry=entry)
        assert failed.is_error
        assert "tape_search" in join_texts(failed.content)


async def test_without_a_tape_the_tools_say_so(use):
    assert (await use("tape_search", query="x")).is_error
    assert (await use("tape_read", entry="abcd")).is_error


async def test_the_model_asks_for_a_compaction(use):
    """M164: compact(focus?) is requested now and made before the next step (seed 004's words)."""
    asked = []
    plain = await use("compact", asked=asked.append)
    focused = await use("compact", asked=asked.append, focus=" the failing\ntests ")
    assert asked == ["", "the failing tests"]
    assert replace(plain, truncated=None) == ToolOutcome.from_text(
        "Context compaction requested. It runs before the next step."
    )
    assert join_texts(focused.content) == (
        "Context compaction requested (focus: the failing tests). It runs before the next step."
    )
    assert (await use("compact")).is_error


def test_all_of_them_may_be_run_twice():
    assert {tool.replay for tool in (*session_tools.RECALL_TOOLS, session_tools.COMPACT_TOOL)} == {
        "safe"
    }


def test_a_damaged_line_hides_no_other(tape, store):
    first, second, _ = recorded(tape, say("heron one"), say("heron two"), say("x"))
    file = store.tapes / tape.folder.name / "phases/0001-main-start/entries.jsonl"
    data = file.read_bytes()
    file.write_bytes(data.replace(b'"heron one"', b'"heron\xffone"'))
    with pytest.warns(DamageWarning, match=first.id[:12]):
        assert second.id in found(tape, "heron")
    assert isinstance(second.data, User)
    with pytest.warns(DamageWarning, match=first.id[:12]):
        assert "heron two" in recall_of(tape).read(second.id, before=3)
