"""Names one can search for: functions are verb + noun, and a public class has a name of its own.

`NOT_YET` lists the rooms whose names do not keep these rules so far. It only shrinks: a room that
keeps them is taken out, and no room is put in.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent

_TAPE = """
    tape.blame tape.blobs tape.blocks tape.branches tape.checked tape.cli tape.clock
    tape.commonmark tape.damage tape.disk tape.entries tape.filecalls tape.find tape.follow
    tape.formats tape.fsck tape.gc tape.given tape.glance tape.index tape.leftovers
    tape.line tape.locks tape.path tape.payload tape.phase tape.redaction tape.reference
    tape.refs tape.render tape.repair tape.replay tape.sendable tape.store tape.summaries
    tape.tape tape.target tape.text tape.transfer tape.trash tape.tree tape.upkeep
    tape.verify tape.view tape.writer
"""
_GONG = """
    gong.agent gong.cli gong.config gong.context gong.credentials gong.env gong.llm
    gong.policy.decision gong.repl gong.signals gong.tools
"""
NOT_YET = {"tape": frozenset(_TAPE.split()), "gong": frozenset(_GONG.split())}
"""Rooms of each package: a folder, or a module that stands alone."""

PARTED = ("gong.llm.offline", "gong.llm.providers")
"""Folders that are rooms of their own beside the folder they are in."""

_VERBS = """
    add answer append apply await begin build call check choose classify clear clip close
    collect compile complete compute continue count create cut decode describe detect drain
    drop emit encode end enter estimate explain extend extract fill find finish flush format
    generate get handle iter join keep limit list load look mark match measure merge move
    normalize open overlay pack parse plan post prepare quote rate read recall refuse remove
    repair replace report request require resolve route run say select send set shorten
    split start stem stop stream strip summarize take update validate wait weigh wrap write
"""
VERBS = frozenset(_VERBS.split())
"""First words of functions that do something: put yours here where it is one."""

PREDICATES = frozenset({"is", "has", "can", "may", "supports", "sees"})
"""First words of functions whose answer is yes or no."""

CONVERSIONS = frozenset({"from", "to", "on"})
"""First words of constructors, of conversions, and of what is called when something happens."""

ACCESSORS = {
    "gong.llm.offline": {
        "stream": "of gong.llm.types.Provider",
        "close": "of gong.llm.types.Provider",
    },
    "gong.llm.providers": {
        "stream": "of gong.llm.types.Provider",
        "close": "of gong.llm.types.Provider, and as of files and connections",
        "feed": "as of the parsers of the standard library",
        "finish": "the end of what feed begins",
        "usage": "what a decoder has counted so far",
        "elements": "of tape.formats.encoder.Encoder",
        "parts": "of tape.formats.encoder.Form",
        "send": "of the HTTP client",
        "wait": "as asyncio.wait_for",
    },
}
"""Room → function or method that need not be verb + noun → why."""

SHARED_CLASSES: dict[str, str] = {}
"""Public class name → why it may stand in more than one module."""

_PARTICIPLES = """
    begun bent bought bound broken brought built caught chosen done drawn driven fallen fed
    felt forgotten fought found given gone grown heard held hidden hung kept known laid led
    lent lost made meant met owed paid rebuilt said seen sent shown slept sold spent spoken
    stolen stood struck sworn taken taught thought thrown told torn understood undone unsaid
    untold won worn written
"""
_IRREGULAR = frozenset(_PARTICIPLES.split())
_NO_PARTICIPLES = frozenset({"need", "feed", "speed", "seed", "embed", "shed", "hundred", "indeed"})


@dataclass(frozen=True, slots=True)
class Function:
    """One function or method: `name` is CLASS.NAME inside a class."""

    file: Path
    line: int
    name: str

    @property
    def words(self) -> list[str]:
        return self.name.rpartition(".")[2].strip("_").split("_")

    def complain(self, why: str) -> str:
        return f"{self.file}:{self.line}: {self.name} {why}"


def room(file: Path) -> str:
    """Return the room of a file below the root: `gong/tools/find.py` → `gong.tools`."""
    module = ".".join(file.with_suffix("").parts)
    parted = (one for one in PARTED if module.startswith(f"{one}."))
    return next(parted, ".".join(module.split(".")[:2]))


def parse_package(root: Path, package: str) -> dict[Path, ast.Module]:
    """Return file → syntax tree of every module of a package."""
    files = sorted((root / package).rglob("*.py"))
    return {file.relative_to(root): ast.parse(file.read_text("utf-8")) for file in files}


def find_faults(root: Path, package: str) -> dict[str, list[str]]:
    """Return room → one line for each broken rule."""
    faults: dict[str, list[str]] = defaultdict(list)
    trees = parse_package(root, package)
    for file, tree in trees.items():
        for function in _functions(file, tree):
            is_listed = function.name.rpartition(".")[2] in ACCESSORS.get(room(file), {})
            if not is_listed and (why := judge(function)):
                faults[room(file)].append(function.complain(why))
    for name, places in _class_places(trees).items():
        for file in places if len(places) > 1 and name not in SHARED_CLASSES else ():
            others = ", ".join(str(one) for one in places if one != file)
            faults[room(file)].append(f"{file}: class {name} stands in {others} too")
    return faults


def judge(function: Function) -> str:
    """Return what is wrong with a name; empty where nothing is."""
    words = function.words
    if len(words) == 1 and is_participle(words[0]):
        return "is a bare participle: say what is done, as a verb and a noun"
    if words[0] in PREDICATES | CONVERSIONS or (words[0] in VERBS and len(words) > 1):
        return ""
    return "is not verb + noun: rename it, or list it in ACCESSORS with the reason"


def is_participle(word: str) -> bool:
    """Return whether a word is a past participle, such as told or merged."""
    regular = word.endswith("ed") and not word.endswith("eed") and len(word) > 4
    return word in _IRREGULAR or (regular and word not in _NO_PARTICIPLES)


def _functions(file: Path, tree: ast.AST, owner: str = "") -> Iterator[Function]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(file, node, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not _is_dunder(node.name) and not _is_property(node):
                yield Function(file, node.lineno, f"{owner}{node.name}")
            yield from _functions(file, node)
        else:
            yield from _functions(file, node, owner)


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = {ast.unparse(one).rpartition(".")[2] for one in node.decorator_list}
    return not names.isdisjoint({"property", "cached_property", "setter"})


def _class_places(trees: dict[Path, ast.Module]) -> dict[str, list[Path]]:
    places: dict[str, list[Path]] = defaultdict(list)
    for file, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(file)
    return places


@pytest.mark.parametrize("package", NOT_YET)
def test_names_can_be_searched_for(package):
    faults = find_faults(ROOT, package)
    rooms = faults.keys() - NOT_YET[package]
    broken = [line for name in sorted(rooms) for line in faults[name]]
    assert not broken, "\n" + "\n".join(broken)


@pytest.mark.parametrize("package", NOT_YET)
def test_a_room_that_keeps_the_rules_is_not_listed(package):
    done = NOT_YET[package] - find_faults(ROOT, package).keys()
    assert not done, f"take these rooms out of NOT_YET: {', '.join(sorted(done))}"


def test_every_accessor_that_is_listed_is_there():
    for name, reasons in ACCESSORS.items():
        files = (file for file in parse_package(ROOT, "gong").items() if room(file[0]) == name)
        there = {one.name.rpartition(".")[2] for file in files for one in _functions(*file)}
        assert reasons.keys() <= there


JUDGED = {
    "def told(): pass": "is a bare participle",
    "def _merged(): pass": "is a bare participle",
    "class A:\n    def kept(self): pass": "is a bare participle",
    "def usage(): pass": "is not verb + noun",
    "def parse(): pass": "is not verb + noun",
    "def messages_of(): pass": "is not verb + noun",
    "def parse_usage(): pass": "",
    "async def _open_stream(): pass": "",
    "def is_free(): pass": "",
    "class A:\n    @property\n    def told(self): pass": "",
    "class A:\n    def __len__(self): pass": "",
}


@pytest.mark.parametrize(("text", "complaint"), JUDGED.items())
def test_a_made_up_name_is_judged(tmp_path, text, complaint):
    plant(tmp_path, {"gong/shed.py": text})
    lines = find_faults(tmp_path, "gong").get("gong.shed", [])
    assert [complaint in line for line in lines] == ([True] if complaint else [])


def test_a_class_name_in_two_modules_is_told_of_both(tmp_path):
    text = "class Writer: pass\nclass _Inner: pass"
    plant(tmp_path, {"tape/a.py": text, "tape/b/c.py": text, "gong/a.py": text})
    assert find_faults(tmp_path, "tape") == {
        "tape.a": ["tape/a.py: class Writer stands in tape/b/c.py too"],
        "tape.b": ["tape/b/c.py: class Writer stands in tape/a.py too"],
    }
    assert find_faults(tmp_path, "gong") == {}


def plant(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
