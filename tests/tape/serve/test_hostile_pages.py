"""Every page of stores in which every field is hostile: nothing is obeyed or becomes markup."""

from __future__ import annotations

import json
from urllib.parse import quote, urlencode

import pytest
from msgspec import Raw

from tape.model.entries import Assistant, Text, ToolCall, ToolResult, User
from tape.store.store import Beginning, Store
from tests.e2e import hostile
from tests.tape.serve.conftest import serving
from tests.tape.serve.test_browser import CHROMIUM, browser

__all__ = ["browser"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
]
MARKUP = (
    "zebra <script>alert(1)</script><img src=x onerror=alert(1)>\"'><svg onload=alert(1)>"
    "<iframe src=//example.org></iframe><a href=javascript:alert(1)>x</a>[x](javascript:alert(1))"
    "<!--{{7*7}}${7*7}%3Cscript%3E&lt;b&gt;]]></title></style></textarea>\x1b[31m\u202eabc\u2066"
)
NAME = "<img src=x onerror=alert(1)>\x1b[31m\u202eabc.py"
FIND = r"""
() => {
  const found = [];
  const bad = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069]/;
  if (bad.test(document.title)) found.push(document.title);
  for (const node of document.querySelectorAll("*")) {
    if (["IMG", "IFRAME", "OBJECT", "BASE"].includes(node.tagName)) found.push(node.outerHTML);
    for (const { name, value } of node.attributes) {
      if (name.startsWith("on") && !name.startsWith("on-")) found.push(`${name}=${value}`);
      const leads = ["href", "src", "action"].includes(name);
      const isOut = node.rel === "noopener noreferrer nofollow" && /^https?:/.test(value);
      if (leads && !isOut && !/^(\/|#|data:|$)/.test(value)) found.push(value);
      if (name !== "data-points" && bad.test(value)) found.push(`${name}=${value}`);
    }
    if (["SCRIPT", "STYLE"].includes(node.tagName)) continue;
    const texts = [...node.childNodes].filter((part) => part.nodeType === Node.TEXT_NODE);
    found.push(...texts.map((part) => part.data).filter((text) => bad.test(text)));
  }
  return found;
}
"""
"""What of a page is markup that we do not write, or text that a browser would obey."""
OPEN = "() => document.querySelectorAll('details > summary').forEach((one) => one.click())"


def write_file(store, folder):
    """Record a session that writes a file with a hostile name and text in it; return its id."""
    folder.mkdir()
    (folder / NAME).write_text(MARKUP + "\nx = 1\n")
    with store.create(Beginning(str(folder), "test/1", title=MARKUP)) as tape:
        with tape.writer() as writer:
            writer.append(User((Text(MARKUP),)))
            fields = json.dumps({"path": NAME, "content": MARKUP + "\n"}, separators=(",", ":"))
            call = ToolCall("c1", "write", Raw(fields.encode()))
            writer.append(Assistant((call,), "p", model=MARKUP))
            writer.append(ToolResult("c1", "write", (Text(MARKUP),)))
            writer.barrier()
        return tape.id


@pytest.fixture(scope="module", params=["escapes", "markup"])
def served(request, tmp_path_factory):
    """A server of a store full of escapes or of markup, and the paths of all its pages."""
    home, evil = tmp_path_factory.mktemp("hostile"), {"escapes": hostile.EVIL, "markup": MARKUP}
    text = evil[request.param]
    prefix = hostile.fill(home, text)
    store = Store(home / ".tape", durable=False)
    file = write_file(store, home / "files")
    hidden, words = quote(text, safe=""), urlencode({"q": text})
    with store.open(prefix) as tape, serving(home) as server, tape.writer("b") as writer:
        writer.append(User((Text(text),)))
        writer.barrier()
        lists = ("/", "/?q=zebra", f"/?{words}", "/?all=project", f"/?{urlencode({'model': text})}")
        sums = ("/running", "/costs", "/costs?all=model", "/search?q=zebra", f"/search?{words}")
        sides = (f"/compare?a={tape.id}:main&b={tape.id}:b", f"/compare?a={file}&b={tape.id}:b")
        files = (f"/file?{urlencode({'session': file, 'path': NAME})}",)
        wrong = (
            f"/session/{hidden}",
            f"/{hidden}",
            f"/compare?a={hidden}&b=x",
            f"/file?path={hidden}",
        )
        sessions = (f"/session/{tape.id}", f"/session/{file}")
        yield server, (*lists, *sums, *sides, *files, *wrong, *sessions)


def test_nothing_hostile_is_obeyed_on_any_page(browser, served):
    """M213"""
    server, paths = served
    page, faults = browser.new_page(viewport={"width": 1000, "height": 900}), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text))
    page.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
    page.on(
        "request",
        lambda asked: asked.url.startswith((server.base, "data:")) or faults.append(asked.url),
    )
    page.goto(server.address)
    found = {}
    for path in paths:
        page.goto(f"{server.base}{path}")
        page.wait_for_selector("html[data-ready]")
        page.evaluate(OPEN)
        page.wait_for_timeout(50)  # what folds is drawn once it is open
        found[path] = page.evaluate(FIND)
    page.close()
    assert {path: bad for path, bad in found.items() if bad} == {}
    assert [fault for fault in faults if not fault.startswith("Failed to load resource")] == []
