"""Sessions of pi: older files brought to version 3, and trees that become tapes (M204)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.context.repair import repair
from tape.context.view import Target, view
from tape.errors import UsageError
from tape.formats.sessions import pi
from tape.formats.sessions.pi_file import migrate_entries, parse_pi_session, split_branches
from tape.model.entries import Assistant, ToolResult, join_texts, select_tool_calls
from tape.sessions.import_ import import_session
from tape.store.store import Beginning, Store

CORPUS = Path(__file__).parents[4] / "shared/corpus/sessions/pi"
HEADER = {
    "type": "session",
    "id": "s-1",
    "version": 3,
    "cwd": "/src",
    "timestamp": "2025-01-01T00:00:00Z",
}
HERE = Beginning("/here", "test/1")


def write_lines(*entries, header=HEADER) -> bytes:
    return "".join(f"{json.dumps(entry)}\n" for entry in (header, *entries)).encode()


def make_message(identity, parent, role, text, **more):
    content = text if role == "user" else [{"type": "text", "text": text}]
    message = {"role": role, "content": content, **more}
    time = f"2025-01-01T00:00:{int(identity) % 60:02}Z"
    return {
        "type": "message",
        "id": identity,
        "parentId": parent,
        "timestamp": time,
        "message": message,
    }


TREE = [
    make_message("1", None, "user", "start"),
    make_message("2", "1", "assistant", "answer"),
    make_message("3", "2", "user", "left"),
    make_message("4", "3", "assistant", "left answer"),
    make_message("5", "2", "user", "right"),
    {"type": "label", "id": "6", "parentId": "5", "targetId": "2", "label": "Good One"},
    {"type": "session_info", "id": "7", "parentId": "6", "name": "My title"},
]


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store", durable=False)


def read_texts(tape, branch):
    """Return role and text of what a model would see at the head of a branch."""
    head = tape.head(branch)
    path = tape.entries(head, to_anchor=True)
    anchor = path[0].data if path[0].type == "anchor" else None
    seen = view(path, tape.kept(anchor) if anchor is not None else ())
    messages = repair(seen, Target("", "", "")).messages
    return [(message.role, join_texts(message.content)) for message in messages]


def import_pi_session(store, data):
    session = pi.read_session(lambda: data.split(b"\n"), "file")
    (done,) = import_session(store, session, HERE, "file.jsonl", "0" * 64)
    return done


def import_and_open(store, data):
    done = import_pi_session(store, data)
    tape = store.open(done.id)
    assert [*verify(tape, Counts())] == []
    return done, tape


def test_entries_that_are_older_than_their_file_keep_their_times(store):
    """A session that was branched off has the time of that in its header."""
    header = {**HEADER, "timestamp": "2026-01-01T00:00:00Z"}
    _, tape = import_and_open(store, write_lines(*TREE[:3], header=header))
    with tape:
        times = [entry.time[:19] for entry in tape.entries(tape.head())]
    assert times == [f"2025-01-01T00:00:0{second}" for second in (1, 1, 2, 3)]


def test_entries_that_are_not_understood_are_counted_by_kind(store):
    later = make_message("9", "8", "narrator", "hm")
    future = {"type": "future", "id": "8", "parentId": "7", "timestamp": HEADER["timestamp"]}
    done = import_pi_session(store, write_lines(*TREE, future, later))
    assert done.unknown_kinds == {"future": 1, "message_narrator": 1}
    assert done.unknown == 2


class TestVersions:
    """M204: versions 1 and 2 become version 3."""

    def test_a_plain_list_becomes_a_chain(self):
        old = [
            {"type": "message", "message": {"role": "user", "content": "a"}},
            {"type": "message", "message": {"role": "hookMessage", "content": "b"}},
            {"type": "compaction", "summary": "s", "firstKeptEntryIndex": 2, "tokensBefore": 5},
        ]
        new = migrate_entries(old, 1)
        ids = [entry["id"] for entry in new]
        assert [len(one) for one in ids] == [8, 8, 8]
        assert len({*ids}) == 3
        assert [entry["parentId"] for entry in new] == [None, *ids[:2]]
        assert new[1]["message"]["role"] == "custom"
        assert new[2]["firstKeptEntryId"] == ids[1]
        assert "firstKeptEntryIndex" not in new[2]
        assert old[1]["message"]["role"] == "hookMessage"
        assert migrate_entries(old, 1) == new

    def test_a_tree_keeps_its_ids(self):
        old = [make_message("1", None, "user", "a"), make_message("2", "1", "hookMessage", "b")]
        new = migrate_entries(old, 2)
        assert [(one["id"], one["parentId"]) for one in new] == [("1", None), ("2", "1")]
        assert new[1]["message"]["role"] == "custom"

    @pytest.mark.parametrize("index", [None, -1, 0, 9, "x"])
    def test_an_index_that_names_nothing_keeps_nothing(self, index):
        new = migrate_entries([{"type": "compaction", "firstKeptEntryIndex": index}], 1)
        assert "firstKeptEntryId" not in new[0]

    def test_a_newer_file_is_refused(self):
        with pytest.raises(UsageError, match="version 4, and this program knows 3"):
            parse_pi_session(write_lines(header={**HEADER, "version": 4}))

    @pytest.mark.parametrize(
        "data", [b"", b"not json\n", b'{"type":"message","id":"1"}\n', b"[]\n"]
    )
    def test_a_file_without_a_header_is_no_session(self, data, store):
        with pytest.raises(UsageError, match="not a session of pi"):
            import_pi_session(store, data)
        assert store.folders() == []

    def test_lines_that_are_no_entries_are_counted(self, store):
        data = write_lines(TREE[0]) + b"torn {\n[1]\n\xff\n" + json.dumps(TREE[1]).encode()
        done, tape = import_and_open(store, data)
        assert done.damaged == 3
        assert read_texts(tape, "main") == [("user", "start"), ("assistant", "answer")]


class TestTree:
    def test_branches_labels_title_and_times(self, store):
        done, tape = import_and_open(store, write_lines(*TREE))
        assert (done.branches, done.version) == (2, 3)
        assert read_texts(tape, "main")[-1] == ("user", "right")
        other = next(name for name in tape.refs().branches if name != "main")
        assert [text for _, text in read_texts(tape, other)] == [
            "start",
            "answer",
            "left",
            "left answer",
        ]
        assert tape.refs().current == "main"
        assert tape.title() == "My title"
        assert [*tape.refs().labels] == ["good-one"]
        times = [
            entry.time[:19] for entry in tape.entries(tape.head("main")) if entry.type != "custom"
        ]
        assert times == [f"2025-01-01T00:00:{second:02}" for second in (0, 1, 2, 5)]

    def test_the_same_file_again_adds_nothing(self, store):
        first = import_pi_session(store, write_lines(*TREE))
        again = import_pi_session(store, write_lines(*TREE))
        assert (first.id, first.path) == (again.id, again.path)
        with store.open(first.id) as tape:
            total = sum(1 for _ in tape.phases.read_all_lines())
        assert (first.added, again.added) == (
            total - 1,
            0,
        )  # the fork's own entry is not the file's

    def test_calls_get_ids_of_ours_and_results_find_them(self, store):
        call = {"type": "toolCall", "id": "x", "name": "bash", "arguments": {"command": "ls"}}
        answer = {
            "role": "assistant",
            "content": [call, call | {"id": "y"}],
            "stopReason": "toolUse",
        }
        entries = [
            make_message("1", None, "user", "go"),
            {"type": "message", "id": "2", "parentId": "1", "message": answer},
            make_message(
                "3", "2", "toolResult", "one", toolCallId="x", toolName="bash", isError=True
            ),
            make_message("4", "3", "toolResult", "two", toolCallId="y", toolName="bash"),
            {"type": "message", "id": "5", "parentId": "4", "message": answer},
            make_message("6", "5", "toolResult", "three", toolCallId="x", toolName="bash"),
        ]
        _, tape = import_and_open(store, write_lines(*entries))
        path = [entry.data for entry in tape.entries(tape.head("main"))]
        calls = [
            call.id
            for one in path
            if isinstance(one, Assistant)
            for call in select_tool_calls(one.content)
        ]
        results = [(one.call_id, one.is_error) for one in path if isinstance(one, ToolResult)]
        assert len({*calls}) == 4
        assert results == [(calls[0], True), (calls[1], False), (calls[2], False)]

    def test_what_is_not_of_the_talk_is_kept_whole(self, store):
        entries = [
            make_message("1", None, "user", "go"),
            {"type": "custom", "id": "2", "parentId": "1", "customType": "x", "data": {"a": [1]}},
            {"type": "future", "id": "3", "parentId": "2", "words": "never lost"},
            {
                "type": "message",
                "id": "4",
                "parentId": "3",
                "message": {
                    "role": "bashExecution",
                    "command": "ls",
                    "output": "a\nb",
                    "exitCode": 1,
                },
            },
            {
                "type": "message",
                "id": "5",
                "parentId": "4",
                "message": {
                    "role": "bashExecution",
                    "command": "pwd",
                    "output": "",
                    "excludeFromContext": True,
                },
            },
        ]
        _, tape = import_and_open(store, write_lines(*entries))
        lines = b"".join(tape.lines(tape.head("main"))).decode()
        for words in ('"customType":"x"', "never lost", "Ran `ls`", "Ran `pwd`"):
            assert words in lines
        seen = " ".join(text for _, text in read_texts(tape, "main"))
        assert "Command exited with code 1" in seen
        assert "pwd" not in seen

    @given(parents=st.lists(st.sampled_from([None, *"123456789"]), max_size=9))
    def test_every_entry_is_on_one_branch(self, parents):
        """Rings, missing parents and several roots included."""
        entries = [{"id": str(n + 1), "parentId": parent} for n, parent in enumerate(parents)]
        branches = split_branches(entries)
        found = [one["id"] for branch in branches for one in branch.entries]
        assert sorted(found) == [entry["id"] for entry in entries]
        before: set[str] = set()
        for branch in branches:
            assert branch.base is None or branch.base in before
            before |= {one["id"] for one in branch.entries}


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason="no corpus here")
class TestCorpus:
    def test_a_model_sees_what_pi_shows_it(self, tmp_path):
        for number, line in enumerate((CORPUS / "context_cases.jsonl").read_text().splitlines()):
            case = json.loads(line)
            entries = case["entries"]
            at = next((n for n, one in enumerate(entries) if one["id"] == case["leaf"]), None)
            if at is not None:  # the leaf is the newest entry
                entries = [*entries[:at], *entries[at + 1 :], entries[at]]
                entries = [
                    one for one in entries if one["id"] in find_ancestors(entries, case["leaf"])
                ]
            store = Store(tmp_path / str(number), durable=False)
            _, tape = import_and_open(store, write_lines(*entries))
            wanted = [one["text"] for one in case["expect"]["messages"]]
            texts = [text for _, text in read_texts(tape, "main")]
            assert len(texts) == len(wanted), case["id"]
            assert all(one in text for one, text in zip(wanted, texts, strict=True)), case["id"]

    def test_old_versions_and_damaged_files_are_read_as_pi_reads_them(self):
        for line in (CORPUS / "migration_cases.jsonl").read_text().splitlines():
            case = json.loads(line)
            header, *entries = case["entries"]
            new = migrate_entries(entries, header.get("version", 1))
            if "ids" in case["expect"]:
                assert [one["id"] for one in new] == case["expect"]["ids"]
                assert [one["parentId"] for one in new] == case["expect"]["parents"]
            else:
                assert [one["parentId"] for one in new] == [None, *(one["id"] for one in new[:-1])]
        for line in (CORPUS / "load_cases.jsonl").read_text().splitlines():
            case = json.loads(line)
            try:
                found = 1 + len(parse_pi_session(case["content"].encode()).entries)
            except UsageError:
                found = 0
            assert found == case["expect_entries"], case["id"]


def find_ancestors(entries, leaf):
    by_id = {one["id"]: one for one in entries}
    found = []
    while leaf in by_id:
        found.append(leaf)
        leaf = by_id[leaf]["parentId"]
    return found
