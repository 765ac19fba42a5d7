"""The file of an export: what stands in it, what is masked, and that it stands alone."""

import base64
import json
import shutil
from hashlib import sha256
from itertools import count

import pytest
from msgspec import Raw

from tape.archive.export import export_tape
from tape.damage import DamageWarning
from tape.errors import Damaged, NotFound, UsageError
from tape.masking.secrets import mask_json, mask_text
from tape.model import line as lines
from tape.model.entries import Anchor, Custom, Image, KeptRange, Note, User
from tape.model.line import Upcast
from tape.pages.markdown import MaskCount, render_markdown
from tape.store.maintenance.upkeep import detach, redact
from tape.store.refs import Pin
from tests.faults.histories import LONG, small
from tests.tape import making, reader
from tests.tape.moving import exported, folder_of, history, imported, names, other, whole

KEY = "sk-ant-api03-" + "aB3" * 12


def objects(data):
    return [json.loads(line) for line in data.split(b"\n")[:-1]]


def test_a_file_holds_everything_in_order_and_entries_unchanged(tmp_path):
    made = small(tmp_path / "store")
    with made.store.open(made.tape) as tape:
        data = exported(tape)
    found, folder = objects(data), made.folder(made.tape)
    kinds = [next(iter(one)) for one in found]
    assert kinds[:2] == ["export", "blob"]
    assert found[0]["tape"] == json.loads((folder / "tape.json").read_bytes())
    assert found[0]["folder"] == folder.name
    assert base64.b64decode(found[1]["data"]).decode() == LONG
    assert [one["phase"] for one in found if "phase" in one and "h" not in one] == names(
        folder / "phases"
    )
    bodies = [
        (folder / "phases" / name / "entries.jsonl").read_bytes()
        for name in names(folder / "phases")
    ]
    raw = data.split(b"\n")[:-1]
    assert b"\n".join(one for one in raw if one.startswith(b'{"id"')) + b"\n" == b"".join(bodies)
    journal = (folder / "refs.jsonl").read_bytes()
    assert b"\n".join(one for one in raw if one.startswith(b'{"h"')) + b"\n" == journal
    assert [one["type"] for one in found if "type" in one] == [
        json.loads(one)["type"] for body in bodies for one in body.split(b"\n")[:-1]
    ]  # only entries have a type
    end = found[-1]["end"]
    assert end["sha256"] == sha256(data[: data.rindex(b'{"end"')]).hexdigest()
    assert (end["entries"], end["phases"], end["blobs"]) == (10, 3, 1)


def test_a_copy_is_the_same_byte_for_byte(tmp_path):
    made, store = small(tmp_path / "store"), other(tmp_path)
    with made.store.open(made.tape) as tape:
        done = imported(store, exported(tape))
        assert exported(tape, redact=True) == exported(tape)  # nothing to mask
    assert (done.id, done.added, done.entries, done.lost) == (made.tape, 10, 10, 0)
    copy = folder_of(store, made.tape)
    assert str(copy) == done.path
    assert history(copy) == history(made.folder(made.tape))
    whole(store, made.tape)
    with store.open(made.tape) as tape:
        making.write(tape, "on it goes")
        assert exported(tape) != b""
    whole(store, made.tape)


def test_a_fork_is_independent_with_the_past_it_shares(tmp_path):
    made, store = small(tmp_path / "store"), other(tmp_path)
    with made.store.open(made.child) as child:
        said = making.texts(child)
        data = exported(child)
        imported(store, data)
        with store.open(made.child) as copy:
            assert making.texts(copy) == said
        detach(child)
        assert exported(child) == data
    whole(store, made.child)
    assert history(folder_of(store, made.child)) == history(made.folder(made.child))


def test_a_fork_whose_origin_is_gone_says_so(tmp_path):
    made = small(tmp_path / "store")
    shutil.rmtree(made.folder(made.tape))
    with made.store.open(made.child) as child, pytest.raises(NotFound, match="forked from"):
        exported(child)


def test_what_was_redacted_in_the_origin_is_named_in_the_copy(tmp_path):
    store, there = making.store_in(tmp_path / "store"), other(tmp_path)
    with store.create(making.beginning()) as parent:
        (gone, _) = making.write(parent, "hide me", "stay")
        with store.create(making.beginning(), origin=(parent, parent.head())) as child:
            making.write(child, "mine")
            redact(parent, [gone.id], "why")
            data = exported(child)
    done = imported(there, data)
    assert b"hide me" not in data
    whole(there, done.id)
    assert imported(there, data).added == 0


def test_a_path_is_only_what_leads_to_its_entry(tmp_path):
    made, store = small(tmp_path / "store"), other(tmp_path)
    with made.store.open(made.tape) as tape:
        head = tape.head("side")
        said = making.entries(tape, "side")
        data = exported(tape, head)
        assert data == exported(tape, head)
        done = imported(store, data)
        assert done.entries == len(said)
        with store.open(made.tape) as copy:
            assert making.entries(copy) == said
            assert copy.refs().current == "side"
            assert set(copy.refs().branches) == {"main", "side"}
        assert imported(made.store, data).added == 0  # it is a part of what is there
    whole(store, made.tape)


@pytest.mark.parametrize("back", range(7))
def test_every_entry_can_be_the_end_of_a_path(tmp_path, back):
    made, store = small(tmp_path / "store"), other(tmp_path)
    with made.store.open(made.tape) as tape:
        head = tape.find_ancestor(tape.head("main"), back).head
        path = list(tape.lines(head))
        imported(store, exported(tape, head))
    with store.open(made.tape) as copy:
        assert list(copy.lines(copy.head())) == path
    whole(store, made.tape)


def test_a_path_that_was_left_by_going_back_ends_where_it_was_asked_to(tmp_path):
    store, there = making.store_in(tmp_path / "store"), other(tmp_path)
    with store.create(making.beginning()) as tape:
        one, _, three = making.write(tape, "one", "two", "three")
        at = making.at(tape, one.id)
        with tape.journal.open_moves() as moves:
            moves.branch("main", at.phase, Pin(at.offset, at.entry), "undo")
        making.write(tape, "other")
        tape.label("good", three.id)
        data = exported(tape, making.at(tape, three.id))
    done = imported(there, data)
    whole(there, done.id)
    with there.open(done.id) as copy:
        assert making.texts(copy) == ["one", "two", "three"]
        assert copy.refs().labels == {"good": three.id}


def test_labels_off_the_path_are_left_out(tmp_path):
    made, store = small(tmp_path / "store"), other(tmp_path)
    with made.store.open(made.tape) as tape:
        tape.label("far", tape.head("main").entry)
        tape.label("near", tape.head("side").entry)
        imported(store, exported(tape, tape.head("side")))
    with store.open(made.tape) as copy:
        assert set(copy.refs().labels) == {"near"}
    whole(store, made.tape)


def test_redacted_unknown_and_odd_entries_stay_as_they_are(tmp_path):
    store, there = making.store_in(tmp_path / "store"), other(tmp_path)
    with store.create(making.beginning("Größe 大")) as tape:
        (gone,) = making.write(tape, "hide me")
        with tape.writer() as writer:
            writer.append_data("of.tomorrow", b'{"x":1.0,"\\u0041":[1e5,null],"y":"\xe2\x80\xa8"}')
            writer.append(User((Image(tape.blobs.put(b"\x89PNG\x00\xff"), "image/png"),)))
        redact(tape, [gone.id], "why")
        tape.rename("Größe")
        data, folder = exported(tape, redact=True), making.folder_of(store, tape)
    done = imported(there, data)
    whole(there, done.id)
    assert history(folder_of(there, done.id)) == history(folder)
    assert folder_of(there, done.id).name == folder.name


def test_a_path_without_the_entry_that_redacted_is_whole_all_the_same(tmp_path):
    store, there = making.store_in(tmp_path / "store"), other(tmp_path)
    with store.create(making.beginning()) as tape:
        (gone, end) = making.write(tape, "hide me", "end")
        redact(tape, [gone.id], "why")
        data = exported(tape, making.at(tape, end.id))
        done = imported(there, data)
        assert imported(store, data).added == 0
    whole(there, done.id)
    assert imported(there, data).added == 0


def test_older_lines_are_not_written_again(tmp_path, tape):
    def lifted(kind, members):
        members["text"] = members.pop("words")
        return members

    lines.UPCASTS[0] = Upcast({"remark": "note"}, lifted)
    try:
        with tape.writer() as writer:
            head = tape.head()
        _, line = lines.encode_line(
            "remark", head.entry, 1, "2099-01-01T00:00:00.000000Z", b'{"words":"a"}'
        )
        body = line[49 : line.index(b',"data":')].replace(b'"v":1', b'"v":0', 1)
        identity = sha256(body).hexdigest()[:40].encode()
        old = b'{"id":"%b",%b,"data":{"words":"a"}}\n' % (identity, body)
        file = next(tmp_path.glob("store/tapes/*/phases/*/entries.jsonl"))
        file.write_bytes(file.read_bytes() + old)
        assert writer
        assert old in exported(tape)
        there = other(tmp_path)
        imported(there, exported(tape))
        whole_file = next(there.path.glob("tapes/*/phases/*/entries.jsonl")).read_bytes()
        assert whole_file == file.read_bytes()
        making.write(tape, KEY)
        done = imported(there, exported(tape, redact=True))
        with there.open(done.id) as copy:
            assert [e.data for e in making.entries(copy)][1] == Note("a")
            assert b'"v":0' in b"".join(copy.lines(copy.head()))
    finally:
        del lines.UPCASTS[0]


def test_torn_ends_and_empty_phases_are_left_out(tmp_path, tape, folder):
    (folder / "phases/0002-side").mkdir(mode=0o700)
    data = exported(tape)
    file = folder / "phases/0001-main-start/entries.jsonl"
    file.write_bytes(file.read_bytes() + b'{"id":"12')
    (folder / "refs.jsonl").write_bytes((folder / "refs.jsonl").read_bytes() + b'{"h":"')
    with pytest.warns(DamageWarning, match="the last 9 bytes skipped"):
        assert exported(tape) == data
    imported(other(tmp_path), data)


@pytest.mark.parametrize("file", ["phases/0001-main-start/entries.jsonl", "refs.jsonl"])
def test_damage_is_refused_before_the_first_byte(tmp_path, file):
    made = small(tmp_path / "store")
    path = made.folder(made.tape) / file
    data = bytearray(path.read_bytes())
    data[60] ^= 1
    path.write_bytes(data)
    written = []
    with made.store.open(made.tape) as tape, pytest.raises(Damaged):
        export_tape(tape, written.append)
    assert written == []


def test_a_phase_in_use_that_the_journal_does_not_name_is_refused(tmp_path):
    made = small(tmp_path / "store")
    journal = made.folder(made.tape) / "refs.jsonl"
    lines = journal.read_bytes().split(b"\n")
    journal.write_bytes(b"\n".join(line for line in lines if b"compaction" not in line))
    with made.store.open(made.tape) as tape, pytest.raises(Damaged, match="does not name"):
        exported(tape)


def test_a_blob_that_is_lost_stays_lost(tmp_path):
    made, store = small(tmp_path / "store"), other(tmp_path)
    next(made.folder(made.tape).glob("blobs/*/*")).unlink()
    with made.store.open(made.tape) as tape:
        data = exported(tape)
    assert objects(data)[1]["data"] is None
    assert imported(store, data).lost == 1
    with store.open(made.tape) as copy:
        assert "is missing" in making.texts(copy)[1]


# Masking


def secretive(store):
    """Return a tape with secrets in a prompt, a blob and a title, in front of forks and anchors."""
    with store.create(making.beginning("x")) as tape:
        one, *_ = making.write(tape, "one", f"use {KEY}", LONG + f" DB_PASSWORD=hunter22 {LONG}")
        tape.fork(making.at(tape, one.id), "side")
        with tape.writer("side") as writer:
            aside = writer.append(Note("aside"))
            writer.append(Custom("pointer", Raw(json.dumps({"of": one.id}).encode())))
        with tape.writer() as writer:
            head = tape.head()
            kept = KeptRange(head.phase, head.offset, 1, head.entry, head.entry)
            writer.anchor(Anchor(kind="compaction", summary=f"of {KEY}", kept=(kept,)))
            writer.append(making.say("two"))
        redact(tape, [aside.id], "why")  # on main: an entry of a later phase is named by an earlier
        tape.rename(f"Key {KEY}")
        tape.label("good", one.id)
        return tape.id


def test_a_tape_with_secrets_is_rewritten_whole(tmp_path):
    store, there = making.store_in(tmp_path / "store"), other(tmp_path)
    identity = secretive(store)
    with store.open(identity) as tape:
        data = exported(tape, redact=True)
        assert data == exported(tape, redact=True)
        done = imported(there, data)
        assert done.id == objects(data)[0]["tape"]["id"] != identity
        assert objects(data)[0]["masked"] == {"tape": identity, "secrets": 4, "entries": 3}
        whole(there, done.id)
        with there.open(done.id) as copy:
            assert making.texts(copy)[:2] == ["one", "use [redacted:anthropic]"]
            assert "DB_PASSWORD=[redacted:assignment] long" in making.texts(copy)[2]
            assert copy.refs().title == "Key [redacted:anthropic]"
            for branch in ("main", "side"):
                before, after = making.entries(tape, branch), making.entries(copy, branch)
                assert [(e.n, e.time, e.type) for e in before] == [
                    (e.n, e.time, e.type) for e in after
                ]
            anchor = next(e.data for e in making.entries(copy) if isinstance(e.data, Anchor))
            assert [entry.n for entry in copy.kept(anchor)] == [3]
            (good,) = copy.find_entry(copy.refs().labels["good"])
            assert good.head.header.n == 1
            custom = next(
                e.data for e in making.entries(copy, "side") if isinstance(e.data, Custom)
            )
            assert json.loads(bytes(custom.data))["of"] == good.head.entry
    for name, file in reader.files(folder_of(there, done.id)).items():
        assert KEY.encode() not in file, name
        assert b"hunter22" not in file
    assert KEY.lower() not in done.path
    assert imported(there, data).added == 0


def test_a_masked_fork_keeps_its_past_up_to_the_first_secret(tmp_path):
    store, there = making.store_in(tmp_path / "store"), other(tmp_path)
    with store.create(making.beginning()) as parent:
        making.write(parent, "one", KEY, "three")
        past = list(parent.lines(parent.head()))
        with store.create(making.beginning(), origin=(parent, parent.head())) as child:
            making.write(child, "four")
            done = imported(there, exported(child, redact=True))
            assert done.entries == 6
    whole(there, done.id)
    with there.open(done.id) as copy:
        mine = list(copy.lines(copy.head()))
        assert making.texts(copy) == ["one", "[redacted:anthropic]", "three", "four"]
    assert mine[:2] == past[:2]
    assert mine[2][:48] != past[2][:48]


def test_a_secret_in_the_title_alone_is_masked(tmp_path, store, tape):
    tape.rename(f"Key {KEY}")
    data = exported(tape, redact=True)
    assert KEY.encode() not in data
    assert imported(other(tmp_path), data).id != tape.id


def test_a_masked_path_is_whole(tmp_path):
    store, there = making.store_in(tmp_path / "store"), other(tmp_path)
    identity = secretive(store)
    with store.open(identity) as tape:
        done = imported(
            there, exported(tape, tape.find_ancestor(tape.head("main"), 2).head, redact=True)
        )
    whole(there, done.id)


HIDDEN = [
    (f"ANTHROPIC_API_KEY={KEY}", "ANTHROPIC_API_KEY=[redacted:anthropic]"),
    ("sk-proj-" + "aB3_" * 10, "[redacted:openai]"),
    ("key sk-" + "a1B2" * 12 + ".", "key [redacted:api-key]."),
    ("sk-or-v1-" + "0a" * 32, "[redacted:openrouter]"),
    ("AIza" + "B" * 35, "[redacted:google]"),
    ("ghp_" + "a1" * 18, "[redacted:github]"),
    ("github_pat_" + "a1" * 30, "[redacted:github]"),
    ("glpat-" + "a1" * 10, "[redacted:gitlab]"),
    ("AKIAIOSFODNN7EXAMPLE", "[redacted:aws]"),
    ('"SecretAccessKey": "' + "wJalrXUt/1" * 4 + '"', '"SecretAccessKey": "[redacted:aws]"'),
    ("xoxb-123456789012-abc", "[redacted:slack]"),
    ("sk_live_" + "a1" * 12, "[redacted:stripe]"),
    ("hf_" + "aB" * 17, "[redacted:huggingface]"),
    ("Authorization: Bearer abc.def-1", "Authorization: Bearer [redacted:authorization]"),
    ("-H 'authorization: Basic dXNlcjpw'", "-H 'authorization: Basic [redacted:authorization]'"),
    ("postgres://u:hunter2@db/x", "postgres://u:[redacted:url-password]@db/x"),
    ("https://x:ghx1@git.example/a", "https://x:[redacted:url-password]@git.example/a"),
    (
        "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb",
        "a\n[redacted:private-key]\nb",
    ),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\ncut", "[redacted:private-key]"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "[redacted:jwt]"),
    ("export FOO_KEY=abcd1234efgh5678", "export FOO_KEY=[redacted:assignment]"),
    ("MY_TOKEN='abcd1234efgh5678'", "MY_TOKEN='[redacted:assignment]'"),
    ("DB_PASSWORD=hunter", "DB_PASSWORD=[redacted:assignment]"),
    ("password: 'hunter'", "password: '[redacted:assignment]'"),
    ('{"password": "hunter"}', '{"password": "[redacted:assignment]"}'),
    (r'"{\"password\": \"hunter\"}"', r'"{\"password\": \"[redacted:assignment]\"}"'),
    ("host=x password=hunter2 port=5", "host=x password=[redacted:assignment] port=5"),
    ("api_key: a1b2c3d4e5f6a7b8c9", "api_key: [redacted:assignment]"),
]
PLAIN = [
    *("0123456789abcdef" * 2, "a1" * 20, "3f" * 32, "123e4567-e89b-12d3-a456-426614174000"),
    base64.b64encode(bytes(range(256)) * 40).decode(),
    "data:image/png;base64," + base64.b64encode(b"\x89PNG" + bytes(range(255)) * 9).decode(),
    *("c_12345678_0", "toolu_01A09q90qw90lq917835lq9", "max_tokens=100000000000000000"),
    *("task-force-sk-learn", "pip install scikit-learn", "token: str", "def f(token=None): ..."),
    *("password = getpass()", "PASSWORD=$PASS", "PASSWORD=${PASS:-x}", "password: str"),
    *("api_key=os.environ['OPENAI_API_KEY']", "TOKEN=$(cat token)", "password='password'"),
    *("sort_key=created_at_2024_01_01", "https://example.com:8080/a@b", "git@github.com:a/b.git"),
    *("user:pass@host", "https://user@host/", "postgres://user:password@localhost/db"),
    *("API_KEY=<your-api-key-goes-here-1>", "API_KEY=your-api-key-goes-here-12", "Bearer token"),
    *("next_page_token=CAUQAA1234567890abc", "the secret of it", "[redacted:jwt]"),
    '{"input":1,"output":2,"total":3,"cache_read":4}',
]


@pytest.mark.parametrize(("text", "hidden"), HIDDEN)
def test_a_secret_is_masked_once(text, hidden):
    found = mask_text(text)
    assert found == (hidden, 1)
    assert mask_text(hidden) == (hidden, 0)
    data = json.dumps({"content": [text]}).encode()
    assert json.loads(mask_json(data).data) == {"content": [hidden]}


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_no_secret_stays(text):
    assert mask_text(text) == (text, 0)
    data = json.dumps({"content": text}).encode()
    assert mask_json(data) == (data, 0)


@pytest.mark.parametrize(
    ("data", "hidden"),
    [
        (b'{"password":"hunter","n":1.0}', b'{"password":"[redacted:assignment]","n":1.0}'),
        (b'{"a":{"api_key":"abcd1234efgh5678"}}', b'{"a":{"api_key":"[redacted:assignment]"}}'),
        (b'{"token":"function"}', None),
        (b'{"phase":"0001-main","branch":"ghp_111111111111111111111111111111111111"}', None),
        (b'{"a":"sk\\u002dant-api03-aaaaaaaaaaaaaaaaaaaaaa"}', b'{"a":"[redacted:anthropic]"}'),
        (b'{"sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaa":1}', b'{"[redacted:anthropic]":1}'),
        (b'{"a":"\\u0041","token":12345678}', None),
    ],
)
def test_json_is_masked_in_its_strings_and_by_the_names_of_its_members(data, hidden):
    assert mask_json(data).data == (hidden or data)


# Markdown


def test_a_page_reads_well_and_folds_what_tools_did(tmp_path):
    ticks = count(making.DAY, 1_000_000)
    store = making.store_in(tmp_path / "store", lambda: next(ticks))
    with store.create(making.beginning("Login <bug>")._replace(title="Login <bug>")) as tape:
        with tape.writer() as writer:
            writer.append(making.say(f"Use {KEY} </details>"))
            writer.append(making.answer("c_1_0", text="I look."))
            writer.append(making.result("c_1_0", "````\nx = '<b>'"))
            writer.append(making.say(f"{LONG} {KEY}"))
        masks = MaskCount()
        told = []
        page = list(render_markdown(tape, tape.head(), masks=masks, skipped=told.append))
        assert (masks, told) == (MaskCount(2, 2), [])
        exact = list(render_markdown(tape, tape.head(), masks=None, skipped=told.append))
    assert KEY in "\n".join(exact)
    assert KEY not in "\n".join(page)
    assert page[0] == r"# Login \<bug\>"
    at = page.index("I look.")
    assert page[at : at + 13] == [
        "I look.",
        "",
        "<details><summary>✓ → bash</summary>",
        "",
        "```",
        "→ bash",
        "```",
        "",
        "`````",
        "````",
        "x = '<b>'",
        "`````",
        "",
    ]
    assert page[at + 13] == "</details>"


def test_a_page_tells_what_it_cannot_read(tape, folder):
    making.write(tape, "one", "two")
    file = folder / "phases/0001-main-start/entries.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"text":"one"', b'"text":"one\xff"'))
    told = []
    page = list(render_markdown(tape, tape.head(), masks=MaskCount(), skipped=told.append))
    assert "two" in page
    assert len(told) == 1


def test_an_entry_of_a_copied_past_is_no_end_of_a_path(tmp_path):
    made = small(tmp_path / "store")
    with made.store.open(made.child) as child:
        detach(child)
        past = making.at(child, next(child.lines(child.head()))[7:47].decode())
        with pytest.raises(UsageError, match="in the past"):
            exported(child, past)
