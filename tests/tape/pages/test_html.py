"""A tape as a page: inert whatever the tape says, the same bytes again, and the tape comes back."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shutil
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from msgspec import Raw

from tape.archive.import_ import import_file
from tape.errors import Damaged, UsageError
from tape.model.entries import (
    Anchor,
    Assistant,
    ChangedFile,
    Checkpoint,
    CoveredRange,
    FileState,
    Opaque,
    OtherEnvironment,
    Text,
    Thinking,
    Tokens,
    ToolCall,
    ToolResult,
    ToolStart,
    User,
)
from tape.pages.html import export_page
from tests.faults.histories import small
from tests.tape import making
from tests.tape.making import say
from tests.tape.moving import HERE, exported, folder_of, history, other, whole
from tests.tape.pages.browser import open_browser

KEY = "sk-ant-api03-" + "aB3" * 12
HOSTILE = (
    "</script><script>document.title='pwned'</script><!-- <img src=x onerror=alert(1)>"
    " \x1b[31mred\x1b[0m \u202eabc\u202c \u2028 ]]> </style></title>"
)
CHROMIUM = os.environ.get("TAPE_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
LOOK = """
async () => {
  const frame = () => new Promise(requestAnimationFrame);
  const log = document.getElementById("log");
  const text = log.innerText;
  log.querySelector(".open").click();
  for (let n = 0; n < 5; n += 1) await frame();
  const opened = log.innerText;
  scrollTo(0, document.documentElement.scrollHeight);
  for (let n = 0; n < 9; n += 1) await frame();
  return {
    text, opened, end: log.innerText, title: document.title,
    ready: document.documentElement.dataset.ready,
    wider: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    images: document.images.length, elements: log.querySelectorAll("*").length,
    targets: [...document.querySelectorAll('a:not([href^="#"])')].map((a) => a.href),
  };
}
"""


class Page(HTMLParser):
    """The elements of a page: what is in scripts and styles, and attributes that lead elsewhere."""

    def __init__(self, data: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.is_open = False
        self.inside: list[list[str]] = []
        self.feed(data.decode())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside.append([])
        self.is_open = True

    def handle_endtag(self, tag):
        self.is_open = False

    def handle_data(self, data):
        if self.inside and self.is_open:
            self.inside[-1].append(data)

    def find_all(self, tag):
        return [
            (attributes, "".join(inside))
            for (name, attributes), inside in zip(self.tags, self.inside, strict=True)
            if name == tag
        ]


def page_of(tape, head=None, *, redact=False):
    parts = []
    export_page(tape, parts.append, head=head, redact=redact)
    return b"".join(parts)


def call(name, **arguments):
    return ToolCall(id="c_00000001_0", name=name, args=Raw(json.dumps(arguments).encode()))


@pytest.fixture
def store(tmp_path):
    return making.store_in(tmp_path / "store")


def write_hostile(tape):
    with tape.writer() as writer:
        tape.rename(HOSTILE)
        writer.append(say(HOSTILE))
        ran = call("bash", command=HOSTILE)
        writer.append(Assistant((Thinking(HOSTILE), Text(HOSTILE), ran), model=HOSTILE))
        writer.append(ToolResult(ran.id, "bash", (Text(HOSTILE * 9000),)))
        writer.barrier()


def test_a_page_brings_its_tape_back_byte_for_byte(tmp_path):
    made, there = small(tmp_path / "store"), other(tmp_path)
    with made.store.open(made.tape) as tape:
        page = page_of(tape)
    done = import_file(there, io.BytesIO(page), HERE)
    assert (done.id, done.added, done.lost) == (made.tape, 10, 0)
    assert history(folder_of(there, made.tape)) == history(made.folder(made.tape))
    whole(there, made.tape)
    assert import_file(there, io.BytesIO(page), HERE).added == 0


def test_escapes_of_a_lines_own_come_back_as_they_were(store, tmp_path):
    with store.create(making.beginning()) as tape, tape.writer() as writer:
        writer.append_data("note", rb'{"text":"\u003c \u003C < \\u003c"}')
        writer.barrier()
        page, archive = page_of(tape), exported(tape)
    there = other(tmp_path)
    done = import_file(there, io.BytesIO(page), HERE)
    with there.open(done.id) as tape:
        assert exported(tape) == archive


def test_the_same_tape_gives_the_same_bytes(tmp_path):
    made = small(tmp_path / "store")
    with made.store.open(made.tape) as tape:
        assert page_of(tape) == page_of(tape)
        assert page_of(tape, redact=True) == page_of(tape)


def test_nothing_of_a_hostile_tape_is_markup(store):
    with store.create(making.beginning()) as tape:
        write_hostile(tape)
        data, archive = page_of(tape), exported(tape)
    page = Page(data)
    scripts = page.find_all("script")
    assert [one.get("type") for one, _ in scripts] == ["application/json", "application/json", None]
    assert not page.find_all("img")
    assert not [tag for tag, has in page.tags if {"src", "href", "onclick", "onerror"} & {*has}]
    lines = json.loads(scripts[0][1])
    assert "".join(f"{line}\n" for line in lines).encode() == archive
    assert HOSTILE.split(" ", maxsplit=1)[0] not in data.decode()
    (title,) = page.find_all("title")
    assert "\u202e" not in title[1]
    assert "\x1b" not in data.decode()


def test_the_policy_allows_this_script_and_style_and_no_address(store):
    with store.create(making.beginning()) as tape:
        write_hostile(tape)
        page = Page(page_of(tape))
    ((_, style),) = page.find_all("style")
    _, _, (_, script) = page.find_all("script")
    (policy,) = [
        attributes["content"]
        for attributes, _ in page.find_all("meta")
        if "http-equiv" in attributes
    ]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    for name, text in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(sha256(text.encode()).digest()).decode()
        assert rules[name] == f"'sha256-{digest}'"
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", script)
    assert not re.search(r"@import|url\(", style)


def test_edits_are_diffs_and_branches_have_their_heads(store):
    with store.create(making.beginning()) as tape:
        with tape.writer() as writer:
            writer.append(say("go"))
            edit = call("edit_file", path="a.py", old_string="x = 1", new_string="x = 2")
            said = writer.append(Assistant((edit,)))
            before, after = tape.blobs.put(b"x = 1\n"), tape.blobs.put(b"x = 2\n")
            change = ChangedFile(
                *("a.py", "modified"),
                before=before.hash,
                after=after.hash,
                mode="100644",
                before_blob=before,
                after_blob=after,
            )
            result = writer.append(ToolResult(edit.id, "edit_file", (Text("ok"),), files=(change,)))
            writer.barrier()
        tape.label("good", said.id)
        tape.fork(tape.head(), "side", why="fork")
        with tape.writer("side") as writer:
            end = writer.append(say("other"))
            writer.barrier()
        view = json.loads(Page(page_of(tape)).find_all("script")[1][1])
    assert view["calls"][said.id] == [{"head": "→ edit_file a.py", "body": "-x = 1\n+x = 2"}]
    assert "-x = 1" in (changed := view["changes"][result.id])
    assert "+x = 2" in changed
    assert view["labels"] == {"good": said.id}
    assert view["branches"] == [
        {"name": "main", "head": result.id, "current": True},
        {"name": "side", "head": end.id, "current": False},
    ]


def test_a_branch_alone_is_a_page_of_its_path(store):
    with store.create(making.beginning()) as tape:
        making.write(tape, "one", "two")
        tape.fork(tape.head(), "side", why="fork")
        with tape.writer("side") as writer:
            writer.append(say("aside"))
            writer.barrier()
        making.write(tape, "three")
        page = Page(page_of(tape, tape.head("side")))
    lines, view = (json.loads(text) for _, text in page.find_all("script")[:2])
    assert not [line for line in lines if "three" in line]
    assert [line for line in lines if "aside" in line]
    assert [one["name"] for one in view["branches"] if one["current"]] == ["side"]
    assert page.find_all("title")[0][1] == "one"  # it was given none


def test_secrets_are_masked_in_title_text_and_diffs(store):
    with store.create(making.beginning()) as tape:
        with tape.writer() as writer:
            tape.rename(f"Use {KEY}")
            writer.append(say(f"use {KEY}"))
            writer.append(Assistant((call("bash", command=f"export KEY={KEY}"),)))
            writer.barrier()
        masked, exact = page_of(tape, redact=True), page_of(tape)
    assert KEY.encode() not in masked
    assert b"3 secrets masked" in masked or b"2 secrets masked" in masked
    assert KEY.encode() in exact


def test_a_page_without_a_tape_or_with_half_of_one_is_refused(store, tmp_path):
    with store.create(making.beginning()) as tape:
        making.write(tape, "one")
        page = page_of(tape)
    there = other(tmp_path)
    with pytest.raises(UsageError, match="holds no tape"):
        import_file(there, io.BytesIO(b"<!DOCTYPE html>\n<p>hello"), HERE)
    with pytest.raises(Damaged, match="ends within"):
        import_file(there, io.BytesIO(page[: page.index(b']</script>\n<script type="app')]), HERE)
    damaged = page.replace(b"one", b"own")
    with pytest.raises(Damaged):
        import_file(there, io.BytesIO(damaged), HERE)
    assert [*there.folders()] == []


def test_a_page_is_not_much_larger_than_its_export(store):
    with store.create(making.beginning()) as tape, tape.writer() as writer:
        for number in range(300):
            writer.append(User((Text(f"question {number} " * 20),)))
            writer.append(Assistant((Text("answer " * 100),)))
        writer.barrier()
        page, archive = page_of(tape), exported(tape)
    assert len(page) < 1.3 * len(archive) + 60_000


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium, or TAPE_CHROMIUM")
def test_a_browser_draws_it_and_runs_nothing_of_it(store, tmp_path):
    with store.create(making.beginning()) as tape:
        write_hostile(tape)
        with tape.writer() as writer:
            entries = [*tape.entries(tape.head())]
            covers = CoveredRange(entries[1].id, entries[1].id, 1)
            sizes = Tokens(900, 90)
            writer.anchor(
                Anchor(kind="compaction", summary="It was hostile.", covers=covers, tokens=sizes)
            )
            writer.append_data("test.kind", b'{"kind":"first"}')
            writer.append_data("test.kind", b'{"kind":"second"}')
            inner, outer = entries[1].id, [*tape.entries(tape.head())][-1].id
            writer.anchor(
                Anchor(kind="compaction", summary="Again.", covers=CoveredRange(inner, outer, 5))
            )
            for number in range(2000):
                writer.append(say(f"question {number}"))
                writer.append(Assistant((Text(f"**answer** {number} [x](javascript:alert(1))"),)))
            search = {"type": "web_search_call", "action": {"query": "<b>this</b>"}}
            note = {"type": "url_citation", "url": "javascript:alert(1)", "title": "<i>Page</i>"}
            cited = Text("Found.", wire=Raw(json.dumps({"annotations": [note]}).encode()))
            writer.append(Assistant((Opaque(raw=Raw(json.dumps(search).encode())), cited)))
            writer.barrier()
        (tmp_path / "page.html").write_bytes(page_of(tape))
    with open_browser(CHROMIUM, tmp_path / "profile") as browser:
        for width, height in ((400, 860), (1400, 1000)):
            seen = browser.read(tmp_path / "page.html", width, height, LOOK)
            assert seen["title"].endswith("</style></title>")
            assert seen["errors"] == []
            assert (seen["ready"], seen["wider"], seen["images"]) == ("true", 0, 0)
            assert seen["targets"] == []
            assert "Compacted 5 entries" in seen["text"]
            assert "Compacted 1 entry" not in seen["text"]  # it is within the later one
            assert "Compacted 1 entry" in seen["opened"]
            assert "2 other entries: first, second" in seen["opened"]
            assert "answer 3 x (javascript:alert(1))" in seen["text"]
            assert "question 1500" not in seen["text"]
            assert "question 1999" in seen["end"]
            assert "web_search: <b>this</b>" in seen["end"]
            assert "<i>Page</i> (javascript:alert(1))" in seen["end"]
            assert seen["elements"] < 2000  # drawn near the viewport only


READ = """async () => ({ text: document.getElementById("log").innerText })"""


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium, or TAPE_CHROMIUM")
def test_a_page_says_where_calls_acted(store, tmp_path):
    """M125: where the place changes; `tape serve` shows sessions by the same page."""
    far = OtherEnvironment("ssh://far<b>/srv", "/srv")
    with store.create(making.beginning()) as tape:
        with tape.writer() as writer:
            writer.append(say("go"))
            for name, place in (("a", None), ("b", far), ("c", far), ("d", None)):
                writer.append(Assistant((ToolCall(name, f"tool_{name}", Raw(b"{}")),)))
                writer.append(ToolStart(name, f"tool_{name}", environment=place))
                writer.append(ToolResult(name, f"tool_{name}", (Text(f"result of {name}"),)))
            state = FileState("x", None)
            writer.append(Checkpoint((state,), why="restore", environment=far))
            writer.barrier()
        (tmp_path / "page.html").write_bytes(page_of(tape))
    with open_browser(CHROMIUM, tmp_path / "profile") as browser:
        seen = browser.read(tmp_path / "page.html", 1400, 1000, READ)
    assert seen["errors"] == []
    wanted = r"In \S+:|On the machine of the session:|tool_\w|Files restored in \S+"
    said = re.findall(wanted, seen["text"])
    assert said == [
        "tool_a",
        "In ssh://far<b>/srv:",
        "tool_b",
        "tool_c",
        "On the machine of the session:",
        "tool_d",
        "Files restored in ssh://far<b>/srv",
    ]
