"""Names one can search for: functions are verb + noun, and a public class has a name of its own.

A method has its class for a noun, so one word is enough there (`writer.append`); commands of click
are named as they are typed. No name is a bare participle (`told`, `kept`). A variable is the noun
of what it holds (`folder`, not `one`; `match`, not `found`), and a test says its subject and what
it does (`test_blame_of_a_deleted_file_names_the_deletion`).
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.sources import PACKAGES, ROOT, list_all_nodes, list_nodes, parse_package, parse_packages

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

_VERBS = """
    abandon accept accumulate add admit adopt advance align allow answer append apply ask assemble
    assign attach attribute await become begin bind blame blank break build call catch change
    check choose claim classify clean clear clip close coerce collect commit compact compare
    compile complete compute confirm connect contain continue convert copy count create cut decide
    decode delete describe detach detect disarm discard download drain draw drop dump edit elide
    emit emphasize empty encode end ensure enter erase escape estimate exec execute expand explain
    export extend extract fence fetch file fill filter find finish fit fix flatten flush fold
    follow forget fork format fsck gather generate get give group hand handle hash hide hold
    import indent index inherit inject inline insert inspect install invoke iter join judge keep
    kill learn leave lengthen level limit line link list load locate lock look make map mark mask
    match measure merge migrate move name next normalize note notify number open order overlay
    overwrite pack pad paint pair parse paste patch perform pin place plan play pop populate post
    prepare preview print probe pull push put quarantine query queue quit quote raise rank rate
    read reap rebuild recall receive reclaim record register redirect refuse relativize release
    remove rename render reopen repair repeat replace replay report request require reset resize
    resolve restate restore restrict resume revoke rewrite route run save say scale scan scroll
    scrub search seek select send serve set settle shape shorten show shrink silence skip sleep
    sort space spawn splice split spread stage start stat stem stop store stream strip style
    substitute suggest sum summarize survey swap switch sync take terminate test tidy touch trace
    translate trim truncate trust try undo unescape unite unlink unpack unspace unwrap upcast
    update upload use validate verify view wait walk warn watch weigh wrap write
"""
VERBS = frozenset(_VERBS.split())
"""First words of functions that do something: put yours here where it is one."""

PREDICATES = frozenset({"is", "has", "can", "may", "supports", "sees", "needs", "ends"})
"""First words of functions whose answer is yes or no."""

CONVERSIONS = frozenset({"from", "to", "on"})
"""First words of constructors, of conversions, and of what is called when something happens."""

ACCESSORS: dict[str, str] = {
    **dict.fromkeys(
        ("tape.cli.main", "gong.cli.main", "gong.env.scanner.main", "gong.env.supervisor.main"),
        "where a program starts",
    ),
    **dict.fromkeys(
        (
            *("tape.check.verify.verify", "tape.context.repair.repair", "tape.context.view.view"),
            *("tape.history.follow.follow", "tape.store.maintenance.upkeep.detach"),
            *("tape.store.maintenance.upkeep.redact", "tape.store.tape.kept"),
        ),
        "docs/library.md names it",
    ),
    "tape.store.maintenance.upkeep.move": "beside detach and redact",
    **dict.fromkeys(
        ("gong.llm.models.cost", "gong.sdk.generation.generate", "gong.sdk.results.text_stream"),
        "gong.llm names it, as other clients do",
    ),
    **dict.fromkeys(
        (f"gong.env.{one}.real_path" for one in ("local", "places.environment", "protocol")),
        "as os.path.realpath",
    ),
    **dict.fromkeys(
        (f"gong.repl.typing.keyboard.{one}_mode" for one in ("raw", "cooked")),
        "prompt-toolkit calls it so",
    ),
    "gong.repl.draw.full_screen.mouse_handler": "prompt-toolkit calls it so",
    **dict.fromkeys(
        (f"gong.acp.agent.{one}" for one in ("new_session", "ext_method", "ext_notification")),
        "the package of the protocol calls it so",
    ),
    **dict.fromkeys(
        (f"tape.remote.metrics_page.{name}" for name in ("do_GET", "log_message")),
        "http.server calls it so",
    ),
    "gong.context.trim.micro_compact": "the mission names it (M212)",
    **dict.fromkeys(
        ("tape.cli.group.shell_complete", "tape.cli.completion.source_vars"), "click calls it so"
    ),
}
"""MODULE.FUNCTION → why its name is not verb + noun."""

SHARED_CLASSES: dict[str, str] = {
    "Session": "the SDK that `tape.stores.openai_agents` extends calls its own so",
}
"""Public class name → why it may be in more than one module."""

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
    """One function: `owner` is "" in a module, the class of a method, or None inside a function."""

    file: Path
    line: int
    name: str
    owner: str | None = ""
    is_command: bool = False

    @property
    def words(self) -> list[str]:
        return self.name.strip("_").split("_")

    @property
    def place(self) -> str:
        return f"{name_module(self.file)}.{self.name}"

    def complain(self, why: str) -> str:
        return f"{self.file}:{self.line}: {self.name} {why}"


def name_module(file: Path) -> str:
    """Return the dotted name of a file below the root."""
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


def find_faults(root: Path, package: str) -> list[str]:
    """Return one line for each broken rule."""
    faults: list[str] = []
    trees = parse_package(root, package)
    for file, tree in trees.items():
        faults += [
            function.complain(why)
            for function in _functions(file, tree)
            if function.place not in ACCESSORS and (why := judge(function))
        ]
    for name, files in _class_files(trees).items():
        if len(files) > 1 and name not in SHARED_CLASSES:
            faults.append(f"class {name} is in {', '.join(map(str, files))}")
    return faults


def judge(function: Function) -> str:
    """Return what is wrong with a name; empty where nothing is."""
    words = function.words
    if function.is_command:
        return ""
    if len(words) == 1 and is_participle(words[0]):
        return "is a bare participle: say what is done, as a verb and a noun"
    if len(words) == 1 and function.owner != "":
        return ""
    if words[0] in PREDICATES | CONVERSIONS or (words[0] in VERBS and len(words) > 1):
        return ""
    return "is not verb + noun: rename it, or list it in ACCESSORS with the reason"


def is_participle(word: str) -> bool:
    """Return whether a word is a past participle, such as told or merged."""
    regular = word.endswith("ed") and not word.endswith("eed") and len(word) > 4
    return word in _IRREGULAR or (regular and word not in _NO_PARTICIPLES)


def _functions(file: Path, tree: ast.AST, owner: str | None = "") -> Iterator[Function]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(file, node, node.name)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = {ast.unparse(one) for one in node.decorator_list}
            if not _is_dunder(node.name) and not _is_property(decorators):
                is_command = any(re.search(r"\.(command|group)\b", one) for one in decorators)
                yield Function(file, node.lineno, node.name, owner, is_command)
            yield from _functions(file, node, None)
        else:
            yield from _functions(file, node, owner)


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _is_property(decorators: set[str]) -> bool:
    names = {one.rpartition(".")[2] for one in decorators}
    return not names.isdisjoint({"property", "cached_property", "setter"})


def _class_files(trees: dict[Path, ast.Module]) -> dict[str, list[Path]]:
    files: dict[str, list[Path]] = defaultdict(list)
    for file, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files[node.name].append(file)
    return files


@pytest.mark.parametrize("package", PACKAGES)
def test_names_can_be_searched_for(package):
    faults = find_faults(ROOT, package)
    assert not faults, "\n" + "\n".join(faults)


def test_a_public_class_name_is_in_one_package():
    files = _class_files(parse_packages())
    shared = {name: places for name, places in files.items() if len(places) > 1}
    assert shared.keys() == SHARED_CLASSES.keys(), shared


_OTHER_LIMITS = re.compile(
    r"_*(?:MOST|LONGEST|LARGEST|FEWEST|SHORTEST|SMALLEST|BIGGEST|HIGHEST|LEAST|SOONEST|LATEST)(?:_|$)"
)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_names_of_limits_begin_with_max_or_min(package):
    names = [
        f"{file}: {target.id}"
        for file, node in list_nodes(ROOT, package)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and _OTHER_LIMITS.match(target.id)
    ]
    assert names == []


DIALECT: dict[str, int] = {
    "asked": 2,
    "begun": 4,
    "found": 12,
    "given": 6,
    "kept": 40,
    "made": 2,
    "one": 13,
    "said": 3,
    "shown": 7,
    "told": 3,
    "wanted": 7,
}
"""Words that name nothing → how many functions and classes may still have such a variable.

Name what it holds instead. The figures only shrink: lower one where you rename some.
"""


def list_own_names(node: ast.AST) -> set[str]:
    """Return the parameters, variables and attributes that a function or a class sets."""
    match node:
        case ast.FunctionDef(args=args) | ast.AsyncFunctionDef(args=args):
            names = {arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
            for inner in ast.walk(node):
                match inner:
                    case (
                        ast.Name(id=name, ctx=ast.Store())
                        | ast.Attribute(attr=name, ctx=ast.Store())
                    ):
                        names.add(name)
        case ast.ClassDef(body=body):
            fields = [line.target for line in body if isinstance(line, ast.AnnAssign)]
            names = {field.id for field in fields if isinstance(field, ast.Name)}
        case _:
            names = set()
    return {name.strip("_") for name in names}


def count_words(nodes: Iterable[ast.AST], words: Collection[str]) -> Counter[str]:
    """Return in how many functions and classes each of these words is the name of a variable."""
    return Counter(word for node in nodes for word in list_own_names(node) if word in words)


def test_variables_in_the_dialect_become_fewer():
    counts = count_words((node for _, node in list_all_nodes()), DIALECT)
    assert {word: count for word, count in counts.items() if count > DIALECT[word]} == {}


def test_variables_of_a_function_and_fields_of_a_class_are_counted(tmp_path):
    text = """class Plan:
    kept: int

    def take(self, one, *, given=1):
        self._told = [found for found in one]
        return [found for found in one], lambda said: said
"""
    plant(tmp_path, {"tape/a.py": text})
    counts = count_words((node for _, node in list_nodes(tmp_path, "tape")), [*DIALECT])
    assert counts == Counter(("kept", "one", "given", "told", "found"))


_TEST_NAME = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
_TEST_DIALECT = re.compile(
    r"_(?:told|said|stands?|stood|begun|aside|anew|mended|untold|unsaid|wanted|so_many|nobody"
    r"|whatever|whoever|made_up|goes_on|went_on|at_once)(?:_|$)"
)


def test_the_names_of_tests_say_who_does_what():
    names = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in sorted((ROOT / "tests").rglob("test_*.py"))
        for name in _TEST_NAME.findall(file.read_text("utf-8"))
        if _TEST_DIALECT.search(name)
    ]
    assert names == []


def test_every_accessor_that_is_listed_is_there():
    there = {
        function.place
        for file, tree in parse_packages().items()
        for function in _functions(file, tree)
    }
    assert ACCESSORS.keys() <= there


JUDGED = {
    "def told(): pass": "is a bare participle",
    "def _merged(): pass": "is a bare participle",
    "class A:\n    def kept(self): pass": "is a bare participle",
    "def usage(): pass": "is not verb + noun",
    "class A:\n    def usage_of(self): pass": "is not verb + noun",
    "class A:\n    def append(self): pass": "",
    "@group.command()\ndef log(): pass": "",
    "def open_it():\n    def question(): pass": "",
    "def parse(): pass": "is not verb + noun",
    "def messages_of(): pass": "is not verb + noun",
    "def parse_usage(): pass": "",
    "async def _open_stream(): pass": "",
    "def is_free(): pass": "",
    "class A:\n    @property\n    def told(self): pass": "",
    "class A:\n    def __len__(self): pass": "",
}


@pytest.mark.parametrize(("text", "complaint"), JUDGED.items())
def test_an_example_name_is_judged(tmp_path, text, complaint):
    plant(tmp_path, {"gong/shed.py": text})
    assert [complaint in line for line in find_faults(tmp_path, "gong")] == [True] * bool(complaint)


def test_a_public_class_name_is_in_one_module_of_a_package(tmp_path):
    text = "class Writer: pass\nclass _Inner: pass"
    plant(tmp_path, {"tape/a.py": text, "tape/b/c.py": text, "gong/a.py": text})
    assert find_faults(tmp_path, "tape") == ["class Writer is in tape/a.py, tape/b/c.py"]
    assert find_faults(tmp_path, "gong") == []


_RAISES = re.compile(r"(?<!  )\b[Rr]aises ((?:[^.;:\n]|\n(?!\s*\n))*)")
_CLASS_NAME = re.compile(r"\b[A-Z]+[a-z]\w*\b(?!\+)")


def list_class_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names of classes that the modules define, import or take from a module."""
    names = {name for name, value in vars(builtins).items() if isinstance(value, type)}
    for node in nodes:
        match node:
            case ast.ClassDef(name=name) | ast.Attribute(attr=name):
                names.add(name)
            case ast.Import(names=imported) | ast.ImportFrom(names=imported):
                names |= {one.asname or one.name for one in imported}
            case _:
                pass
    return names


def find_unknown_errors(nodes: Collection[tuple[Path, ast.AST]]) -> list[str]:
    """Return one line for each name behind `Raises` in a docstring that is no class."""
    known = list_class_names(node for _, node in nodes)
    return [
        f"{file}: {getattr(node, 'name', 'the module')} raises {name}, which is no class"
        for file, node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for said in _RAISES.findall(ast.get_docstring(node) or "")
        for name in _CLASS_NAME.findall(said)
        if name not in known
    ]


def test_what_a_docstring_raises_is_a_class():
    assert find_unknown_errors(list_all_nodes()) == []


def test_an_example_error_is_found(tmp_path):
    text = '''def open_it():
    """Open it; raises OSError.

    Raises UsageError for a REF, and Locked
    if another program has it, on Ctrl+C too. Other words count nothing.
    """

class UsageError(Exception): pass
'''
    plant(tmp_path, {"tape/a.py": text})
    (found,) = find_unknown_errors(list_nodes(tmp_path, "tape"))
    assert found.endswith("open_it raises Locked, which is no class")


def plant(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
