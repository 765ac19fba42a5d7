"""A store with what pages have to show well: branches, a summary, diffs, scripts of the world.

Each function writes one session and returns its id; `fill` writes them all.
"""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Raw

from tape.clock import read_clock
from tape.model.entries import (
    Anchor,
    Assistant,
    ChangedFile,
    Cost,
    CoveredRange,
    Git,
    Payload,
    Text,
    Thinking,
    Tokens,
    ToolCall,
    ToolResult,
    Usage,
    User,
)
from tape.store.store import Beginning, Store
from tests.tape import making

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tape.store.tape import Tape

MODEL = "claude-sonnet-5-5"
BEFORE = (
    "def total(prices):\n    result = 0\n    for price in prices[1:]:\n        result += price\n"
)
AFTER = BEFORE.replace("[1:]", "")
REWRITTEN = "def total(prices):\n    return sum(prices)\n"
TEST = (
    "from basket import total\n\n\ndef test_all_prices_count():\n    assert total([1, 2, 3]) == 6\n"
)
FAILURE = (
    "F                                                                    [100%]\n"
    "    def test_all_prices_count():\n"
    ">       assert total([1, 2, 3]) == 6\nE       assert 5 == 6\n\n"
    "test_basket.py:5: AssertionError\n1 failed in 0.02s\n"
)
ANSWER = (
    "The loop left out the first price: `prices[1:]` begins at the **second** one. "
    "It now adds all of them, and the test passes:\n\n"
    "```python\nfor price in prices:\n    result += price\n```\n\n"
    "| prices | before | now |\n|---|---|---|\n| `[1, 2, 3]` | 5 | 6 |\n| `[]` | 0 | 0 |\n\n"
    "- `basket.py` is one line shorter in what it skips\n- nothing else uses `total`"
)
TALKS = {
    "اختبار السلة لا ينجح": (
        "لماذا يفشل اختبار السلة في `basket.py`؟ (2 من 3)",
        "الحلقة تتخطى **السعر الأول**: `prices[1:]` تبدأ من الثاني.\n\n- أصلحتها\n- ونجح الاختبار",
    ),
    "מדוע הבדיקה נכשלת?": ("הבדיקה של basket.py נכשלת", "הלולאה **דילגה** על המחיר הראשון."),
    "购物篮的测试为什么失败": (
        "购物篮的测试失败了:为什么?请检查basket.py并说明原因,不要修改其他文件。" * 3,
        "循环跳过了**第一个价格**,因为`prices[1:]`从第二个开始。\n\n1. 修改循环\n2. 重新运行测试",
    ),
    "かごのテストが失敗する理由": (
        "テストが失敗します。なぜですか?",
        "最初の価格が**飛ばされて**いました。",
    ),
    "🧺 basket 👩‍👩‍👧‍👦 fails 🇩🇪🏳️‍🌈": ("🐛🐛🐛 why? 👍🏽", "Fixed 🎉 — see `basket.py` ✅"),
    "w" * 300: ("x" * 4000, "https://example.org/" + "y" * 900 + "\n\n```\n" + "z" * 900 + "\n```"),
}
"""By title: a prompt and its answer."""


class Sample(NamedTuple):
    """Ids of sessions."""

    basket: str
    """In it a branch, a summary, a diff of a file that is there."""
    talks: tuple[str, ...]
    damaged: str


def start_clock(days: int, minutes: float = 0.7) -> Callable[[], int]:
    """Return a clock that began so many days ago and goes on with each look, in microseconds."""
    start, ticks = read_clock() - days * 86_400_000_000, count()
    return lambda: start + int(next(ticks) * minutes * 1_000_000)


def fill(home: Path) -> Sample:
    """Write all sessions into the store of a home folder, the newest last."""
    path = home / ".tape"
    damaged = damage(path)
    talks = tuple(
        talk(Store(path, clock=start_clock(6 - number), durable=False), *each, number)
        for number, each in enumerate(TALKS.items())
    )
    basket = record_basket(Store(path, clock=start_clock(0), durable=False), home / "basket")
    return Sample(basket, talks, damaged)


def say(text: str) -> User:
    """Return a prompt."""
    return User((Text(text),))


def answer(
    *blocks: Text | Thinking | ToolCall, cost: float = 0.0134, output: int = 380
) -> Assistant:
    """Return an answer with what it took."""
    usage = Usage(2140, output, cache_read=18_400, total=20_540 + output)
    return Assistant(
        blocks, "anthropic", model=MODEL, usage=usage, cost=Cost("USD", cost), duration_ms=6200
    )


def call(number: int, name: str, **arguments: str) -> ToolCall:
    """Return a call of a tool."""
    encoded = json.dumps(arguments, separators=(",", ":"), ensure_ascii=False).encode()
    return ToolCall(f"c{number}", name, Raw(encoded))


def write_file(
    tape: Tape, number: int, name: str, before: str | None, after: str
) -> Iterable[Payload]:
    """Return the call that writes a file, and its result, which knows what it changed."""
    blobs = [None if text is None else tape.blobs.put(text.encode()) for text in (before, after)]
    hashes = [blob.hash if blob else None for blob in blobs]
    op = "created" if before is None else "modified"
    file = ChangedFile(
        name, op, before=hashes[0], after=hashes[1], before_blob=blobs[0], after_blob=blobs[1]
    )
    yield answer(call(number, "write", path=name, content=after))
    yield ToolResult(f"c{number}", "write", (Text(f"wrote {name}"),), files=(file,))


def record_basket(store: Store, folder: Path, cwd: str = "") -> str:
    """Write a session about a folder, which is made: two prompts, a summary, a branch beside it.

    `cwd` is what the session says of its place, where that is not the folder.
    """
    folder.mkdir(parents=True)
    begin = Beginning(
        cwd or str(folder),
        "gong/0.1.0",
        project=cwd or str(folder),
        git=Git("3f1c9ae4d2b7", "main", dirty=True),
        repository="github.com/acme/basket",
        person="Ada Lovelace <ada@example.org>",
        machine="ada-laptop",
    )
    with store.create(begin) as tape, tape.writer() as writer:
        put = writer.append
        first = put(say("add a test for the basket"))
        for payload in write_file(tape, 1, "test_basket.py", None, TEST):
            put(payload)
        last = put(answer(Text("`test_basket.py` has a test now; it fails.")))
        covers = CoveredRange(first.id, last.id, 4)
        summary = "### Goal\n\nA test for `basket.py`.\n\n### Done\n\n- `test_basket.py` is there"
        writer.anchor(
            Anchor(kind="compaction", summary=summary, covers=covers, tokens=Tokens(48_200, 3_900))
        )
        asked = put(say("the test of the basket fails: why?"))
        put(
            answer(
                Thinking("5 instead of 6: one price is missing."),
                call(2, "read", path="basket.py"),
                call(3, "bash", command="python -m pytest -q"),
            )
        )
        put(ToolResult("c2", "read", (Text(BEFORE),), duration_ms=3))
        put(ToolResult("c3", "bash", (Text(FAILURE),), is_error=True, duration_ms=1340))
        (place,) = tape.find_own_entries(asked.id)
        tape.fork(place.head, "use-sum")
        with tape.writer("use-sum") as other:
            for payload in write_file(tape, 6, "basket.py", BEFORE, REWRITTEN):
                other.append(payload)
            other.append(answer(Text("`total` is `sum` now.")))
        for payload in write_file(tape, 4, "basket.py", BEFORE, AFTER):
            put(payload)
        put(answer(call(5, "bash", command="python -m pytest -q")))
        put(ToolResult("c5", "bash", (Text("1 passed in 0.01s\n"),), duration_ms=1290))
        put(answer(Text(ANSWER)))
        writer.barrier()
        tape.rename("Why the test of the basket fails")
        tape.label("fixed", tape.head().entry)
    with store.open(tape.id) as tape, tape.writer("main") as writer:
        writer.append(say("are there other loops like this one?"))
        writer.append(answer(call(7, "bash", command="grep -rn '\\[1:\\]' .")))
        found = "".join(f"./lib/part{number}.py:{number}: rows[1:]\n" for number in range(60))
        writer.append(ToolResult("c7", "bash", (Text(found),)))
        writer.append(answer(Text("Sixty, but they leave out a row of titles on purpose.")))
    (folder / "basket.py").write_text(AFTER + "    return result\n")
    (folder / "test_basket.py").write_text(TEST)
    return tape.id


def talk(store: Store, title: str, said: tuple[str, str], number: int) -> str:
    """Write a session of a prompt and an answer, in a folder named like it."""
    begin = Beginning(f"/home/ada/{title[:40]}", f"codex/{number}", person="Grace <g@example.org>")
    with store.create(begin) as tape, tape.writer() as writer:
        writer.append(say(said[0]))
        writer.append(answer(Text(said[1]), cost=0.2 * number))
        writer.barrier()
        tape.rename(title)
        return tape.id


def damage(path: Path) -> str:
    """Write a session, and change a byte in the middle of it."""
    store = Store(path, clock=start_clock(9), durable=False)
    with store.create(Beginning("/home/ada/old", "gong/0.1.0")) as tape:
        making.write(tape, "before the damage", "within the damage", "after the damage")
        file = next(path.rglob("entries.jsonl"))
        file.write_bytes(file.read_bytes().replace(b"within the", b"Xithin the"))
        return tape.id
