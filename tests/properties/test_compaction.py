"""Random sessions, compacted at random places: undo, what is kept, what no summary may lose."""

import asyncio
import re
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import msgspec
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from gong.agent.compaction import CompactionRequest, compact_branch
from gong.agent.merge import merge_branch
from gong.agent.model import AgentModel
from gong.agent.queues import SessionQueues
from gong.agent.recorder import Recorder
from gong.agent.run_context import RunContext, RunState
from gong.agent.setup import SessionSetup
from gong.config import CompactionSettings
from gong.context.tokens import count_fixed_tokens, count_messages_tokens
from gong.context.trim import decide_elision, decide_truncation
from gong.errors import NothingToCompact, NothingToUndo, ServerError
from gong.llm.retry import RetryPolicy
from gong.llm.scripted import iter_call_events, iter_text_events
from gong.llm.types import Finish, StreamFailure, StreamStart
from gong.tools.registry import ToolRegistry
from tape.check.finding import Counts
from tape.check.verify import verify
from tape.context.repair import repair
from tape.context.view import Target, view
from tape.history.replay import replay_path
from tape.model.entries import (
    Assistant,
    Context,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolStart,
    Usage,
    User,
    join_texts,
    select_tool_calls,
)
from tape.model.entries import Model as ModelEntry
from tests.gong.env.memory import MemoryEnvironment
from tests.tape import making
from tests.tape.making import BUDGET

GOOD = "## Goal\nShip it.\n\n## Progress\n### Done\n- a first part\n\n## Next Steps\n- the second"
CHINESE = "## 目标\n发布它。\n\n## 已完成\n- 第一部分\n\n## 下一步\n- 第二部分"
SUMMARIES = {
    "good": GOOD,
    "chinese": CHINESE,
    "bold": "**Goal**\nShip it.\n\n**Next Steps**\n- the second part of all this",
    "json": '{"goal": "ship it", "next_steps": ["the second part"]}',
    "long": GOOD + "\n- and more of it" * 6_000,
    "empty": "",
    "refusal": "I'm sorry, I can't help with that.",
    "call": None,
    "failure": None,
}
APIS = ("anthropic", "openai-chat", "openai-responses", "google")


def model(api, how):
    """Return a model of an API that answers a summariser in one of the ways above."""

    async def stream(request):
        yield StreamStart(request.model)
        if how == "failure":
            yield StreamFailure(ServerError("down", provider="x", status=500))
            return
        said = SUMMARIES[how]
        for one in (
            iter_call_events(0, "bash", "p_1", "{}")
            if said is None
            else iter_text_events(0, said, 999)
        ):
            yield one
        yield Finish("stop", Usage(input=7, output=3, total=10))

    return AgentModel(
        api, f"m-{api}", api, f"https://{api}", stream, "You are an agent.", window=40_000
    )


class Play:
    """One tape, its open branch, and the model that is on."""

    def __init__(self):
        self.home = Path(tempfile.mkdtemp())
        ticks = iter(range(10**9))
        store = making.store_in(self.home, lambda: making.DAY + next(ticks))
        self.record = Recorder.open(store.create(making.beginning("play")), durability="none")
        self.api, self.how, self.number = APIS[0], "good", 0
        self.left = None
        self.has_carried = False
        """A summary holds requests of a branch that was left, too."""
        self.before = []
        """Requests before each compaction that stands and was not spoken behind, newest last."""

    def close(self):
        self.record.close()
        shutil.rmtree(self.home)

    def parts(self, state=None):
        setup = SessionSetup(
            model=model(self.api, self.how),
            tools=ToolRegistry(),
            env=MemoryEnvironment(),
            open=lambda _: self.record,
            compaction=CompactionSettings(keep=400),
            retry=RetryPolicy(max_retries=0),
            clock=lambda: 0,
            token=lambda n: "00" * n,
        )
        return RunContext(setup, self.record, SessionQueues(), state or RunState())

    def request(self):
        return msgspec.json.encode(tuple(self.parts().prepare_next_call().request.messages))

    def view(self):
        seen = view(self.record.path, self.record.kept)
        entries = (*seen.kept, *seen.entries)
        return ids_of(entries)

    def add(self, payload):
        self.record.append(payload)

    # what may happen, one method each

    def prompt(self, size):
        self.number += 1
        self.add(User((Text(f"wish {self.number} 愿望 " + "please do it " * size + "now"),)))

    def steer(self, size):
        self.number += 1
        self.add(Context("user", "steering", (Text(f"steer {self.number} " + "left " * size),)))

    def answer(self, size):
        self.answered("stop", (Text("so it is " * (size + 1)),))

    def aborted(self, size):
        self.answered("aborted", (Text("half " * size),))

    def answered(self, stop, content):
        signed = Thinking("hm " * 9, wire=Raw(b'{"signature":"s"}'))
        self.add(
            Assistant(
                (signed, *content), self.api, self.api, f"https://{self.api}", f"m-{self.api}", stop
            )
        )

    def tools(self, size):
        """Two calls at once; one of them may have no result, two, or one that comes late."""
        self.number += 1
        ids = [f"c_{self.number % 4:08x}_{place}" for place in range(2)]  # ids come again
        calls = tuple(ToolCall(one, "bash", Raw(b'{"command":"ls"}')) for one in ids)
        self.answered("tool_calls", calls)
        for place, one in enumerate(ids):
            self.add(ToolStart(one, "bash"))
            for _ in range((1, 0, 2, 1)[(size + place) % 4]):
                self.add(ToolResult(one, "bash", (Text("line of output\n" * 3 * size),)))
        if size % 5 == 0:
            self.add(User((Text(f"between {self.number}"),)))
            self.add(ToolResult(ids[0], "bash", (Text("late"),)))

    def aside(self, size):
        entries = (*self.record.kept, *self.record.path)
        found = (
            decide_elision(entries, 1_000, 1_000, keep=size % 3)
            if size % 2
            else decide_truncation(entries)
        )
        if found is not None:
            self.add(found)

    def other_model(self, size):
        self.api = APIS[size % len(APIS)]
        self.add(ModelEntry(self.api, f"m-{self.api}"))

    def compaction(self, size):
        self.how = [*SUMMARIES][size % len(SUMMARIES)]
        handoff = size % 7 == 0
        wish = CompactionRequest(
            "user", hard=size % 11 == 0 or handoff, kind="handoff" if handoff else "compaction"
        )
        self.compacted(wish)

    def compacted(self, wish):
        parts, request, ids = self.parts(), self.request(), self.view()
        tokens = self.tokens()
        try:
            done = asyncio.run(compact_branch(parts, wish))
        except NothingToCompact:
            now = self.view()
            more = [entry.type for entry in (*self.record.kept, *self.record.path)][len(ids) :]
            assert (self.request(), now[: len(ids)]) == (request, ids)
            assert len(now) == len(ids) or more[-1:] == ["usage"]
            return
        event(f"compacted, summary {self.how}")
        anchor = done.anchor.data
        kept = ids_of(self.record.kept)
        assert kept == ids[len(ids) - len(kept) :]
        assert ids_of(self.record.tape.kept(anchor)) == kept
        covered = ids[: len(ids) - len(kept)]
        depth = {entry.id: entry.n for entry in self.record.tape.entries(self.record.head())}
        own = [depth[one] for one in covered if one in depth]  # a merge's picks are not on it
        if own:
            first, last = depth[anchor.covers.first], depth[anchor.covers.last]
            left = (depth[one] for one in kept if one in depth)
            assert first <= own[0] <= own[-1] <= last < min(left, default=len(depth))
            assert anchor.covers.count == last - first + 1
        assert replay_path(self.record.tape, self.record.head()).differences == ()
        assert (anchor.tokens.before, anchor.tokens.after) == (tokens, self.tokens())
        assert anchor.tokens.after < anchor.tokens.before
        self.no_word_is_lost(anchor.summary)
        assert list(verify(self.record.tape, Counts())) == []
        self.before.append((done.anchor.id, self.api, request, ids))

    def tokens(self):
        request = self.parts().prepare_next_call().request
        return count_fixed_tokens(request.system, request.tools) + count_messages_tokens(
            request.messages
        )

    def no_word_is_lost(self, summary):
        """Each prompt of the path is in view, in the summary, or shortened with a pointer."""
        here = Counter(typed(self.record.kept))
        missing = 0
        for text, short in typed_with_ids(self.record.tape.entries(self.record.head())):
            whole = text.strip()
            if not whole or here[text]:
                here[text] -= 1
                continue
            missing += not any(tells(one, whole, short) for one in summary.requests)
        gone = [re.match(r"\[(\d+) more requests? stood here", one) for one in summary.requests]
        told = sum(int(one[1]) for one in gone if one)
        assert missing <= told if self.has_carried else missing == told

    def undo(self, size):
        anchor = self.record.path[0]
        try:
            self.record.undo_anchor(leave=True)
        except NothingToUndo:
            assert anchor.type != "anchor"
            return
        if self.before and self.before[-1][0] == anchor.id:
            _, self.api, request, ids = self.before.pop()
            assert (self.request(), self.view()) == (request, ids)

    def fork(self, size):
        tape, entries = self.record.tape, self.record.tape.entries(self.record.head())
        self.left = self.record.head()
        name = tape.fork(making.at(tape, entries[-1 - size % min(len(entries), 9)].id))
        self.record.writer.close()
        self.record = Recorder.open(tape, name, durability="none")
        self.before.clear()

    def carried(self, size):
        if self.left is None:
            return
        ids = self.view()
        try:
            asyncio.run(merge_branch(self.parts(), self.left, [self.left] * (size % 2)))
        except NothingToCompact:
            return
        event("carried")
        self.has_carried = True
        assert ids_of(self.record.kept)[: len(ids)] == ids
        self.before.clear()

    def reopened(self, size):
        request, ids = self.request(), self.view()
        tape, branch = self.record.tape, self.record.branch
        self.record.writer.close()
        self.record = Recorder.open(tape, branch, durability="none")
        assert (self.request(), self.view()) == (request, ids)


def ids_of(entries):
    """Return ids of entries, without those that a phase begins with: they are never sent."""
    return [entry.id for entry in entries if entry.type not in {"branch", "anchor"}]


def typed(entries):
    return [text for text, _ in typed_with_ids(entries)]


def typed_with_ids(entries):
    return [
        (join_texts(entry.data.content), entry.id)
        for entry in entries
        if isinstance(entry.data, User | Context)
    ]


def tells(request, whole, entry):
    """Tell whether a request in a summary is these words, or their beginning and where they are."""
    request = re.sub(r"\Aon branch \S+, which was left: ", "", request)
    cut = re.search(
        r"… \[(\d+) characters more, (?:entry (\w+)|tape_search finds them)\]\Z", request
    )
    if cut is None:
        return request == whole
    begins = request[: cut.start()]
    return (
        entry.startswith(cut[2] or entry)
        and whole.startswith(begins)
        and len(begins) + int(cut[1]) == len(whole)
    )


def faults(messages):
    """Name what breaks the rules all providers share: each call has one result, at once."""
    found, waiting = [], []
    for message in messages:
        if message.role == "tool":
            if message.call_id not in waiting:
                found.append(f"result without its call: {message.call_id}")
            else:
                waiting.remove(message.call_id)
            continue
        found += [f"no result: {call}" for call in waiting]
        waiting = []
        if not message.content:
            found.append("empty message")
        if message.role == "assistant":
            waiting = [call.id for call in select_tool_calls(message.content)]
            if len({*waiting}) < len(waiting):
                found.append("one id twice in an answer")
    return [*found, *(f"no result: {call}" for call in waiting)]


def check(play):
    seen = view(play.record.path, play.record.kept)
    for api in APIS:
        target = Target(f"https://{api}", api, f"m-{api}", sees_images=False)
        done = repair(seen, target)
        assert faults(done.messages) == []
        assert repair(seen, target) == done
        signed = [
            block
            for message in done.messages
            for block in message.content
            if isinstance(block, Thinking) and bytes(block.wire or b"")
        ]
        mine = [
            entry
            for entry in (*seen.kept, *seen.entries)
            if isinstance(entry.data, Assistant)
            and entry.data.api == api
            and entry.data.stop_reason not in {"aborted", "error"}
        ]
        assert len(signed) == len(mine)


DEEDS = (
    *("prompt", "prompt", "steer", "answer", "answer", "aborted", "tools", "tools", "tools"),
    *("aside", "other_model", "compaction", "compaction", "undo", "fork", "carried", "reopened"),
)


@settings(
    max_examples=25 * BUDGET,
    report_multiple_bugs=False,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, 120)), min_size=5, max_size=40))
def test_a_session_may_be_compacted_anywhere(deeds):
    """M155 M156 M157 M160: what a summary covers and keeps is the whole, and undo is exact."""
    play = Play()
    try:
        play.prompt(3)
        for name, size in deeds:
            getattr(play, name)(size)
            check(play)
        play.compacted(CompactionRequest("user", hard=True))
    finally:
        play.close()
