"""Two servers of others: what they answer through a session is what they answer to a bare client.

`.ci/run` installs them, and TAPE_LANGUAGE_SERVERS names the folder.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter

import pytest

from gong.config import LspSettings
from gong.lsp import session_languages
from tests.gong.agent.conftest import Stage, call, seen
from tests.gong.lsp.bare_client import COMMANDS, SERVERS, BareClient
from tests.gong.lsp.test_session import DONE, calling, results

pytestmark = pytest.mark.slow

PYTHON = """\
from store import Item


class Shop:
    def __init__(self) -> None:
        self.items: list[Item] = []

    def sell(self, item: Item, count: int) -> float:
        return item.price * count


def run() -> float:
    shop = Shop()
    return shop.sell(Item("ü𝄞", 2.0), 3)
"""
TYPESCRIPT = """\
import { Item } from "./store";

export class Shop {
  items: Item[] = [];

  sell(item: Item, count: number): number {
    return item.price * count;
  }
}

export function run(): number {
  const shop = new Shop();
  return shop.sell(new Item("ü𝄞", 2.0), 3);
}
"""
FILES = {
    "basedpyright": {
        "shop.py": PYTHON,
        "store.py": "class Item:\n    def __init__(self, name: str, price: float) -> None:\n"
        "        self.name = name\n        self.price = price\n",
        "pyrightconfig.json": '{"typeCheckingMode": "standard"}',
    },
    "tsc": {
        "shop.ts": TYPESCRIPT,
        "store.ts": "export class Item {\n"
        "  constructor(public name: string, public price: number) {}\n}\n",
        "tsconfig.json": '{"compilerOptions": {"strict": true}}',
    },
}
LANGUAGES = {"basedpyright": ("python", "shop.py"), "tsc": ("typescript", "shop.ts")}
EDITS = {
    # Each is made and taken back: twenty edits.
    "basedpyright": [
        ("item.price * count", "item.prize * count"),
        ("item.price * count", "str(item.price)"),
        ("from store import Item", "from store import Item, Missing"),
        ("shop = Shop()", "shop = Shop(1)"),
        ("def run() -> float:", "def run() -> str:"),
        ('Item("ü𝄞", 2.0)', 'Item("ü𝄞", "2")'),
        ("return shop.sell", "return nothing.sell"),
        ("count: int", "count: Int"),
        ("return item.price * count", "return (item.price * count"),
        ("2.0), 3)", "2.0), 3)  # fine"),
    ],
    "tsc": [
        ("item.price * count", "item.prize * count"),
        ("item.price * count", "String(item.price)"),
        ("import { Item }", "import { Item, Missing }"),
        ("new Shop()", "new Shop(1)"),
        ("run(): number", "run(): string"),
        ('Item("ü𝄞", 2.0)', 'Item("ü𝄞", "2")'),
        ("return shop.sell", "return nothing.sell"),
        ("count: number", "count: Int"),
        ("return item.price * count", "return (item.price * count"),
        ("2.0), 3)", "2.0), 3) /* fine */"),
    ],
}


@pytest.fixture(params=COMMANDS)
def name(request):
    if not (SERVERS / COMMANDS[request.param][0]).exists():
        pytest.skip("TAPE_LANGUAGE_SERVERS names no folder with the servers: .ci/run installs them")
    return request.param


@pytest.fixture
async def stage(tmp_path, name):
    """A session whose PATH has this server alone: a known one is found."""
    made = Stage(tmp_path)
    (tmp_path / "bin").mkdir()
    program = COMMANDS[name][0]
    (tmp_path / "bin" / program).symlink_to(SERVERS / program)
    node = os.path.dirname(shutil.which("node"))  # noqa: PTH120 (of a text)
    made.environ["PATH"] = f"{tmp_path}/bin:{node}:/usr/bin:/bin"
    for file, text in FILES[name].items():
        (made.folder / file).write_text(text)
    yield made
    for host in made.hosts:
        await host.close()


@pytest.fixture
def bare(stage, name):
    client = BareClient(name, stage.folder)
    yield client
    client.close()


async def ask(stage, *calls):
    session = await stage.session(*map(calling, calls), DONE, lsp=LspSettings(discover=True))
    await seen(session, "go")
    return results(session)


def place(stage, item):
    """Return a place of an answer as a session writes it: names of files have no blanks here."""
    start = (item.get("targetSelectionRange") or item["range"])["start"]
    file = (item.get("targetUri") or item["uri"]).rpartition("/")[2]
    line = (stage.folder / file).read_text("utf-8").split("\n")[start["line"]]
    units = line.encode("utf-16-le")[: 2 * start["character"]].decode("utf-16-le")
    return f"{file}:{start['line'] + 1}:{len(units) + 1}: {line.strip()}"


def flatten(symbols):
    for symbol in symbols:
        yield symbol["selectionRange"]["start"]["line"] + 1, symbol["name"]
        yield from flatten(symbol.get("children") or ())


async def test_a_session_answers_what_the_server_answers(stage, name, bare):
    """M196"""
    language, file = LANGUAGES[name]
    text = (stage.folder / file).read_text("utf-8")
    line = next(
        n for n, each in enumerate(text.split("\n")) if "sell(new" in each or '"ü𝄞"' in each
    )
    column = text.split("\n")[line].index("Item")
    bare.show(stage.folder / file, language)
    about = {"textDocument": {"uri": (stage.folder / file).as_uri()}}
    where = {**about, "position": {"line": line, "character": column}}
    definition = bare.ask("textDocument/definition", where)
    asked = {**where, "context": {"includeDeclaration": True}}
    references = bare.ask("textDocument/references", asked)
    hover = bare.ask("textDocument/hover", where)["contents"]
    outline = bare.ask("textDocument/documentSymbol", about)
    symbols = bare.ask("workspace/symbol", {"query": "Shop"})
    symbol = {"path": file, "symbol": "Item", "line": line + 1}
    found = await ask(
        stage,
        call("lsp", operation="definition", **symbol),
        call("lsp", operation="references", **symbol),
        call("lsp", operation="hover", **symbol),
        call("lsp", operation="outline", path=file),
        call("lsp", operation="symbols", path=file, symbol="Shop"),
        call("lsp", operation="diagnostics", path=file),
    )
    assert [*dict.fromkeys(found[0].split("\n"))] == [place(stage, item) for item in definition]
    assert Counter(found[1].split("\n")) == Counter(place(stage, item) for item in references)
    assert len(references) >= 4
    # It is asked for plain text, the bare client for what the server likes best.
    word = "class" if name == "basedpyright" else "constructor Item"
    assert word in found[2]
    assert word in hover["value"]
    lines = [line.split(maxsplit=1) for line in found[3].split("\n")]
    assert [(int(number), rest.split(" ", 1)[1]) for number, rest in lines] == [*flatten(outline)]
    assert {"Shop", "sell", "run"} <= {name for _, name in flatten(outline)}
    assert [line.split(": ")[1].split(" ", 1)[1] for line in found[4].split("\n")] == [
        each["name"] + (f" in {inside}" if (inside := each.get("containerName")) else "")
        for each in symbols
    ]
    assert found[5] == "No diagnostics."


async def test_twenty_edits_tell_what_is_newly_wrong(stage, name, bare, monkeypatch):
    """M196: in the result of the edit itself; `make bench` says in which time."""
    monkeypatch.setattr(session_languages, "_EDIT_SECONDS", 60.0)
    language, file = LANGUAGES[name]
    path = stage.folder / file
    text = path.read_text("utf-8")
    edits = []
    for old, new in EDITS[name]:
        edits += [(old, new), (new, old)]
    found = await ask(
        stage,
        call("read", path=file),
        call("lsp", operation="diagnostics", path=file),
        *(call("edit", path=file, oldText=old, newText=new) for old, new in edits),
    )
    assert path.read_text("utf-8") == text
    bare.show(path, language)
    before = Counter(each["message"] for each in bare.list_diagnostics(path))
    news = 0
    for result, (old, new) in zip(found[2:], edits, strict=True):
        text = text.replace(old, new, 1)
        path.write_text(text, "utf-8")
        bare.show(path, language)
        listed = [each for each in bare.list_diagnostics(path) if each.get("severity", 1) <= 2]
        messages = Counter(" ".join(each["message"].split()) for each in listed)
        told = [line for line in result.split("\n") if line.startswith(f"{file}:")]
        assert len(told) == (messages - before).total(), (old, new, result)
        assert all(any(message in line for line in told) for message in messages - before)
        news += len(told)
        before = messages
    assert news >= 9
