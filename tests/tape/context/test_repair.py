import pytest
from msgspec import Raw
from msgspec.structs import replace

from tape.context.repair import (
    NEVER_RAN,
    NO_RESULT,
    STOPPED,
    UNKNOWN_OUTCOME,
    IncrementalRepair,
    Repaired,
    repair,
)
from tape.context.view import Message, Target, view
from tape.model.entries import (
    Anchor,
    Assistant,
    Audio,
    BlobRef,
    Context,
    Document,
    Error,
    Image,
    InjectedResult,
    Model,
    Note,
    Opaque,
    Place,
    Repair,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolStart,
    Unknown,
    User,
)
from tape.model.line import Entry, Unread
from tests.tape.making import answer, result, say

TARGET = Target("https://one", "api", "model")
WIRE = Raw(b'{"signature":"s"}')


def path(*payloads):
    return [Entry(f"{n:040x}", 1, None, n, "", "", payload) for n, payload in enumerate(payloads)]


def mended(*payloads, target=TARGET):
    return repair(view(path(*payloads)), target)


def user(text):
    return Message("user", (Text(text=text),))


def calling(*calls):
    return Message("assistant", answer(*calls).content)


def tool(call, text="done", *, is_error=False):
    return Message("tool", (Text(text=text),), call, "bash", is_error)


def entry_id(n):
    return f"{n:040x}"


class TestAHistoryWithNothingWrong:
    def test_is_sent_as_it_is_and_nothing_is_recorded(self):
        found = mended(
            say("go"), answer("a", "b"), result("a"), result("b"), answer(text="all done")
        )
        assert found == Repaired(
            (
                user("go"),
                calling("a", "b"),
                tool("a"),
                tool("b"),
                Message("assistant", (Text(text="all done"),)),
            ),
            None,
        )

    def test_sends_user_assistant_results_and_context_and_nothing_else(self):
        others = [
            Model("p", "m"),
            Note("x"),
            Error("x", "y"),
            Repair("torn"),
            Unread("x.new", Raw(b"{}"), "unknown type"),
            Unread("user", Raw(b"null"), "redacted"),
        ]
        context = Context("system", "note", (Text(text="be brief"),))
        found = mended(*others, say("go"), context, Context("user", "hook", (Text(text="psst"),)))
        system = Message("system", (Text(text="be brief"),))
        assert found == Repaired((user("go"), system, user("psst")), None)

    def test_begins_with_the_summary_of_its_anchor(self):
        place = Place(phase="0001-main-start", offset=0, entry="")
        anchor = Anchor(
            phase="0002-main-compaction",
            branch="main",
            base=place,
            kind="compaction",
            summary="what was",
        )
        kept = path(say("kept"))
        found = repair(view(path(say("old"), anchor, say("new")), kept), TARGET)
        assert found.messages == (user("what was"), user("kept"), user("new"))


class TestACallWithoutAResult:
    def test_gets_one_that_says_no_result_provided_right_after_it(self):
        """M153: no call stays without a result, and no result without its call."""
        found = mended(say("go"), answer("a"), say("and?"), result("orphan"))
        assert found == Repaired(
            (user("go"), calling("a"), tool("a", NEVER_RAN, is_error=True), user("and?")),
            Repair(
                "results",
                (InjectedResult("a", NEVER_RAN),),
                (entry_id(3),),
                why="1 call had no result · 1 entry cannot be sent",
            ),
        )
        assert NEVER_RAN.startswith("No result provided")

    @pytest.mark.parametrize(
        ("events", "text"),
        [
            ((), NEVER_RAN),
            ((ToolStart("a", "bash"),), UNKNOWN_OUTCOME),
            ((Error("Aborted", "stopped by the user"),), STOPPED),
            ((ToolStart("a", "bash"), Error("Aborted", "stopped")), UNKNOWN_OUTCOME),
            ((Error("RateLimited", "later"),), NEVER_RAN),
            ((say("next"), Error("Aborted", "stopped")), NEVER_RAN),
        ],
    )
    def test_gets_one_that_says_what_is_known(self, events, text):
        found = mended(answer("a"), *events)
        assert found.repair.injected == (InjectedResult("a", text),)
        assert found.messages[1] == tool("a", text, is_error=True)
        assert text.startswith(NO_RESULT)

    def test_gets_it_in_the_order_of_the_calls(self):
        found = mended(answer("a", "b", "c"), result("c"), result("a"))
        assert [m.call_id for m in found.messages[1:]] == ["a", "b", "c"]
        assert [m.is_error for m in found.messages[1:]] == [False, True, False]


class TestResults:
    def test_that_come_late_follow_their_call(self):
        found = mended(answer("a"), say("waiting"), result("a"))
        assert found == Repaired((calling("a"), tool("a"), user("waiting")), None)

    def test_that_come_twice_count_once_the_first_wins(self):
        found = mended(answer("a"), result("a", "first"), result("a", "second"))
        assert found.messages == (calling("a"), tool("a", "first"))
        assert found.repair.dropped == (entry_id(2),)

    def test_before_their_call_are_orphans(self):
        found = mended(result("a", "early"), answer("a"), result("a", "right"))
        assert found.messages == (calling("a"), tool("a", "right"))
        assert found.repair.dropped == (entry_id(0),)

    def test_of_an_id_used_again_belong_to_the_newer_call(self):
        found = mended(answer("a"), result("a", "1"), answer("a"), result("a", "2"))
        assert found == Repaired((calling("a"), tool("a", "1"), calling("a"), tool("a", "2")), None)

    @pytest.mark.parametrize("content", [(), (Text(text=""),), (Text(text=" \n"),)])
    def test_that_say_nothing_say_so(self, content):
        found = mended(answer("a"), ToolResult("a", "bash", content))
        assert found == Repaired((calling("a"), tool("a", "(no output)")), None)

    def test_keep_their_mark_of_an_error(self):
        failed = replace(result("a", "exit 1"), is_error=True)
        assert mended(answer("a"), failed).messages[1] == tool("a", "exit 1", is_error=True)


class TestTurnsThatStayOut:
    @pytest.mark.parametrize("reason", ["aborted", "error"])
    def test_are_those_that_were_stopped_or_failed_with_their_results(self, reason):
        found = mended(say("go"), replace(answer("a", text="I w"), stop_reason=reason), result("a"))
        assert found.messages == (user("go"),)
        assert found.repair.dropped == (entry_id(1), entry_id(2))

    def test_end_the_calls_whose_ids_they_use_again(self):
        aborted = replace(answer("a"), stop_reason="aborted")
        found = mended(answer("a"), aborted, result("a"))
        assert found.messages == (calling("a"), tool("a", NEVER_RAN, is_error=True))

    @pytest.mark.parametrize("content", [(), (Text(text=""),), (Text(text="\n\n "),)])
    @pytest.mark.parametrize("kind", [User, Assistant])
    def test_are_those_that_say_nothing(self, kind, content):
        found = mended(say("go"), kind(content))
        assert found.messages == (user("go"),)
        assert found.repair.dropped == (entry_id(1),)


class TestWhatATargetMaySee:
    mine = Assistant(
        (
            Text(text="t", wire=WIRE),
            Thinking(text="hm", wire=WIRE),
            Thinking(text="", wire=WIRE),
            Thinking(text="x", redacted=True, wire=WIRE),
            Opaque(raw=WIRE),
            ToolCall(id="a", name="bash", wire=WIRE),
        ),
        endpoint="https://one",
        api="api",
        model="model",
    )

    def test_wire_data_goes_back_where_it_came_from(self):
        assert mended(self.mine, result("a")).messages[0].content == self.mine.content

    @pytest.mark.parametrize("field", ["endpoint", "api", "model"])
    def test_and_nowhere_else(self, field):
        found = mended(self.mine, result("a"), target=replace(TARGET, **{field: "other"}))
        assert found.messages[0].content == (
            Text(text="t"),
            Thinking(text="hm"),
            ToolCall(id="a", name="bash"),
        )
        assert found.repair is None

    @pytest.mark.parametrize(
        ("choice", "sent"),
        [("text", (Text(text="hm"),)), ("drop", ()), ("keep", (Thinking("hm"),))],
    )
    def test_thinking_of_another_model_is_text_or_left_out(self, choice, sent):
        """M154: plain, in its place before the answer, never signed; redacted never."""
        other = replace(TARGET, model="other", foreign_thinking=choice)
        found = mended(self.mine, result("a"), target=other).messages[0].content
        assert found == (Text(text="t"), *sent, ToolCall(id="a", name="bash"))
        same = replace(TARGET, foreign_thinking=choice)
        assert mended(self.mine, result("a"), target=same).messages[0].content == self.mine.content

    @pytest.mark.parametrize(
        ("target", "stays"),
        [
            (Target("", "api", ""), True),
            (Target("", "api", "model"), True),
            (Target("", "other", ""), False),
            (Target("", "", ""), False),
            (Target("https://one", "api", ""), False),
        ],
    )
    @pytest.mark.parametrize(
        "wire", [b'{"n":1,"$api":"api"}', b'{"$json":"{\\"$blob\\":1,\\"$api\\":\\"api\\"}"}']
    )
    def test_what_an_array_brought_stays_in_arrays_of_its_api(self, wire, target, stays):
        said = (Text(text="go", wire=Raw(wire)), Opaque(raw=WIRE, wire=Raw(wire)))
        plain = (Text(text="go"),)
        messages = mended(
            User(said), answer("a"), ToolResult("a", "bash", said), target=target
        ).messages
        assert [messages[0].content, messages[2].content] == [said if stays else plain] * 2

    @pytest.mark.parametrize("wire", [b"3", b"[]", b'{"$api":3}', b'{"$json":"{"}', b'{"n":1}'])
    def test_what_names_no_api_goes_to_none(self, wire):
        found = mended(User((Text(text="go", wire=Raw(wire)),)), target=Target("", "api", ""))
        assert found.messages == (user("go"),)

    def test_a_result_of_nothing_stays_so_where_its_api_wrote_it_so(self):
        nothing = (Text(text="", wire=Raw(b'{"$form":"string","$api":"api"}')),)
        silent = ToolResult("a", "bash", nothing)
        for target, content in (
            (Target("", "api", ""), nothing),
            (TARGET, (Text(text="(no output)"),)),
        ):
            assert mended(answer("a"), silent, target=target).messages[1].content == content
            late = mended(answer("a"), say("and?"), silent, target=target)
            assert late.messages[1].content == content

    def test_pictures_only_go_to_models_that_see(self):
        image = Image(blob=BlobRef("0" * 64, 3), mime="image/png")
        seen = (Text(text="look"), image)
        assert mended(User(seen)).messages == (Message("user", seen),)
        blind = mended(User(seen), target=replace(TARGET, sees_images=False))
        note = Text(text="(image omitted: model does not support images)")
        assert blind.messages == (Message("user", (seen[0], note)),)

    def test_what_we_do_not_know_is_never_sent(self):
        found = mended(User((Unknown(raw=Raw(b"7")), Text(text="hi"))))
        assert found.messages == (user("hi"),)

    def test_files_and_sound_are_sent(self):
        ref = BlobRef("0" * 64, 3)
        content = (Document(blob=ref, mime="application/pdf"), Audio(blob=ref, mime="audio/wav"))
        assert mended(User(content)).messages == (Message("user", content),)


def unrecorded(*payloads):
    repairing = IncrementalRepair(TARGET)
    repairing.read(path(*payloads))
    return repairing.find_unrecorded_repair()


class TestTheRecord:
    def test_is_there_only_when_the_newest_says_the_same(self):
        payloads = [say("go"), answer("a")]
        made = mended(*payloads).repair
        assert unrecorded(*payloads) == made
        assert unrecorded(*payloads, made, Repair("torn")) is None
        other = Repair("results", (InjectedResult("b", "x"),))
        assert unrecorded(*payloads, made, other) == made

    def test_changes_nothing_by_standing_on_the_path(self):
        payloads = [say("go"), answer("a"), result("b")]
        made = mended(*payloads)
        assert mended(*payloads, made.repair) == made
