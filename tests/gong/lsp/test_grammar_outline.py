"""Outlines by grammar: what is a symbol in each language, with Python's own parser as judge."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import gong
from gong.lsp import outline_program
from gong.lsp.grammar_outline import OutlineError, find_language, list_symbols
from gong.lsp.outline_program import read_outline

SAMPLES = {
    "a.py": (
        """\
import os
LIMIT = 3
PAIR, OTHER = 1, 2
type Names = list[str]
class Shop:
    name: str = ""
    open: bool
    def sell(self, x):
        self.y = 1
        z = 2
        def inner(): pass
    @property
    def price(self): return 1
    class Part: pass
@cache
async def run():
    pass
square = lambda x: x
if True:
    def late(): pass
d["x"] = 1
LIMIT += 1
""",
        """\
     2  variable LIMIT
     4  type Names
     5  class Shop
     6    field name
     7    field open
     8    method sell
    11      function inner
    13    method price
    14    class Part
    16  function run
    18  function square
    20  function late""",
    ),
    "a.ts": (
        """\
import x from "y";
export interface Item { id: number; price(): number }
export abstract class Shop<T> extends Base {
  name = "";
  #secret = 1;
  constructor() { super(); }
  abstract sell(x: T): void;
  get open() { return true }
  static of() { const q = 1; }
}
export type Names = string[];
export enum Kind { A, B = 2 }
namespace Deep { export function inside() {} }
export const LIMIT = 3, run = (x: number) => { const hidden = () => 1; return x };
export default function main() { function inner() {} }
const { a, b } = x;
declare function told(x: string): void;
declare module Old { }
""",
        """\
     2  interface Item
     2    property id
     2    method price
     3  class Shop
     4    property name
     5    property #secret
     6    method constructor
     7    method sell
     8    method open
     9    method of
    11  type Names
    12  enum Kind
    13  namespace Deep
    13    function inside
    14  variable LIMIT
    14  function run
    14    function hidden
    15  function main
    15    function inner
    17  function told
    18  namespace Old""",
    ),
    "b.tsx": (
        """\
interface Props { id: number }
export const App = (p: Props) => <div>{p.id}</div>;
@mark
export class View {
  @mark
  draw() {}
}
""",
        """\
     1  interface Props
     1    property id
     2  function App
     4  class View
     6    method draw""",
    ),
    "a.js": (
        """\
class A { x = 1; static y() {} *z() {} }
function* gen() {}
exports.foo = function () {};
const f = async () => {};
let v = 1;
""",
        """\
     1  class A
     1    property x
     1    method y
     1    method z
     2  function gen
     4  function f
     5  variable v""",
    ),
    "a.go": (
        """\
package main
import "fmt"
const Limit = 3
var ( a, b int; c = 1 )
type Shop struct { Name string; items []Item }
type Seller interface { Sell(x int) error }
type Names = []string
func (s *Shop) Sell(x int) error { y := 1; var z int; return nil }
func main() { fmt.Println() }
""",
        """\
     3  constant Limit
     4  variable a, b
     4  variable c
     5  type Shop
     5    field Name
     5    field items
     6  type Seller
     6    method Sell
     7  type Names
     8  method (s *Shop) Sell
     9  function main""",
    ),
    "a.rs": (
        """\
mod deep { pub fn inside() {} }
pub struct Shop<T> { name: String, items: Vec<T> }
enum Kind { A, B(u8) }
trait Sell { fn sell(&self); fn twice(&self) {} }
impl<T> Sell for Shop<T> { fn sell(&self) { let x = 1; const Y: u8 = 1; } }
impl Shop<u8> { pub fn new() -> Self { todo!() } }
const LIMIT: usize = 3;
static mut COUNT: u8 = 0;
type Names = Vec<String>;
macro_rules! say { () => {} }
fn main() {}
""",
        """\
     1  module deep
     1    function inside
     2  struct Shop
     2    field name
     2    field items
     3  enum Kind
     3    variant A
     3    variant B
     4  trait Sell
     4    method sell
     4    method twice
     5  impl Sell for Shop<T>
     5    method sell
     6  impl Shop<u8>
     6    method new
     7  constant LIMIT
     8  variable COUNT
     9  type Names
    10  macro say
    11  function main""",
    ),
    "a.c": (
        """\
#include <stdio.h>
#define LIMIT 3
#define MAX(a, b) ((a) > (b) ? (a) : (b))
struct shop { char *name; };
typedef struct { int x; } point_t;
typedef int (*callback)(int);
enum kind { A, B };
static struct shop *find(const char *name) { struct stat *s; return 0; }
int main(int argc, char **argv) { return 0; }
int declared(void);
static int count, *other[3];
int (*handler)(int);
char *copy(const char *x);
""",
        """\
     2  constant LIMIT
     3  macro MAX
     4  struct shop
     4    field name
     5  type point_t
     5    field x
     6  type callback
     7  enum kind
     8  function find
     9  function main
    10  function declared
    11  variable count, other
    12  variable handler
    13  function copy""",
    ),
    "a.cpp": (
        """\
namespace deep {
class Shop : public Base {
 public:
  Shop();
  ~Shop() {}
  int sell(int x) const { return 1; }
  int open;
};
}
int deep::Shop::sell(int x) { int y = 1; return 2; }
template <typename T>
T most(T a) { return a; }
Shop operator+(const Shop& a, const Shop& b) { return a; }
enum class Kind { A };
""",
        """\
     1  namespace deep
     2    class Shop
     4      method Shop
     5      method ~Shop
     6      method sell
     7      field open
    10  function deep::Shop::sell
    12  function most
    13  function operator+
    14  enum Kind""",
    ),
    "a.java": (
        """\
package p;
public class Shop<T> extends Base {
    private String name, other;
    static final int LIMIT = 3;
    public Shop() {}
    @Override
    public int sell(int x) { int y = 1; return y; }
    enum Kind { A, B }
    record Pair(int a, int b) {}
    interface Seller { void sell(); }
    @interface Mark {}
}
""",
        """\
     2  class Shop
     3    field name, other
     4    field LIMIT
     5    constructor Shop
     7    method sell
     8    enum Kind
     8      constant A
     8      constant B
     9    record Pair
    10    interface Seller
    10      method sell
    11    annotation Mark""",
    ),
}


def outline(name: str, text: str) -> str:
    return "".join(f"{line}\n" for line in list_symbols(text, find_language(name) or ""))


@pytest.mark.parametrize("name", SAMPLES)
def test_symbols_of_a_file_in_each_language(name):
    text, expected = SAMPLES[name]
    assert outline(name, text) == f"{expected}\n"


def test_pythons_parser_finds_the_same_classes_and_functions():
    """In a quarter of the modules of the package."""

    def walk(node, depth):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield child.lineno, depth, child.name
                yield from walk(child, depth + 1)
            else:
                yield from walk(child, depth)

    for file in sorted(Path(gong.__file__).parent.rglob("*.py"))[::4]:
        text = file.read_text("utf-8")
        found = []
        for line in list_symbols(text, "python"):
            number, _, symbol = line.lstrip().partition("  ")
            kind, name = symbol.split(maxsplit=1)
            if kind in {"class", "method", "function"} and "lambda" not in text:
                found.append((int(number), (len(symbol) - len(symbol.lstrip())) // 2, name))
        if "lambda" not in text:
            assert found == [*walk(ast.parse(text), 0)], file


@pytest.mark.parametrize(
    ("name", "language"),
    [("a.PY", "python"), ("d/x.h", "c"), ("Makefile", None), ("py", None), ("a.txt", None)],
)
def test_the_language_is_that_of_the_end_of_the_name(name, language):
    assert find_language(name) == language


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("text", ["", "\0\ud800", "{[(" * 600])
def test_what_is_no_code_has_no_symbols(name, text):
    assert outline(name, text) == ""


@pytest.mark.slow
async def test_a_parser_that_crashes_or_takes_too_long_ends_alone(tmp_path, monkeypatch):
    crashing, endless = tmp_path / "a.java", tmp_path / "a.rs"
    crashing.write_text("{[(" * 100_000)
    endless.write_text('{"a":1},' * 200_000)
    with pytest.raises(OutlineError, match=r"a.java has no outline: its parser crashed"):
        await read_outline(str(crashing), lambda words: (words, {}))
    monkeypatch.setattr(outline_program, "_MAX_SECONDS", 1.0)
    with pytest.raises(OutlineError, match=r"a.rs has no outline: not parsed in 1 s"):
        await read_outline(str(endless), lambda words: (words, {}))


async def test_a_project_does_not_bring_the_program_that_parses(tmp_path, monkeypatch):
    (tmp_path / "gong").mkdir()
    (tmp_path / "gong/__init__.py").write_text("raise SystemExit('taken over')")
    (tmp_path / "a.py").write_text("ü = 1\ndef ünicode(): pass\n")
    monkeypatch.chdir(tmp_path)
    found = await read_outline(str(tmp_path / "a.py"), lambda words: (words, {"LC_ALL": "C"}))
    assert found == "     1  variable ü\n     2  function ünicode"


def test_symbols_around_a_fault_are_kept():
    text = "def one(): pass\n\ndef (:\n\nclass Two:\n    def three(self): pass\n"
    assert outline("a.py", text).split() == [
        *("1", "function", "one", "5", "class", "Two", "6", "method", "three")
    ]


def test_a_missing_grammar_says_how_to_install_it():
    code = (
        "import sys\n"
        "from gong.lsp.grammar_outline import OutlineError, list_symbols\n"
        "print(*[name for name in sys.modules if name.startswith('tree_sitter')])\n"
        "sys.modules['tree_sitter_go'] = None\n"
        "try: [*list_symbols('', 'go')]\n"
        "except OutlineError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expected = "\nthe grammar of go is not installed: pip install 'gong[outline]'\n"
    assert done.stdout == expected
