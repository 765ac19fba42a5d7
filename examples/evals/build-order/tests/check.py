import heapq
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = str(Path("order.py").resolve())


def run(text):
    folder = Path(tempfile.mkdtemp())
    (folder / "f").write_text(text)
    done = subprocess.run([sys.executable, PROGRAM, "f"], cwd=folder, capture_output=True, text=True, timeout=20)
    return done.returncode, done.stdout.split("\n")[:-1], done.stderr


def expect(depends):
    waiting = {name: set(needs) for name, needs in depends.items()}
    for needs in depends.values():
        for name in needs:
            waiting.setdefault(name, set())
    made, free = [], [name for name, needs in waiting.items() if not needs]
    heapq.heapify(free)
    while free:
        made.append(heapq.heappop(free))
        for name, needs in waiting.items():
            if made[-1] in needs:
                needs.discard(made[-1])
                if not needs:
                    heapq.heappush(free, name)
    return made


class Order(unittest.TestCase):
    def test_the_project(self):
        text = Path(__file__).with_name("project.txt").read_text()
        self.assertEqual(run(text), (0, ["base", "core", "docs", "icons", "ui", "app", "tests"], ""))

    def test_small_ones(self):
        self.assertEqual(run(""), (0, [], ""))
        self.assertEqual(run("b: a\n\n  # x: y\n c :a  a\tz\nb:z"), (0, ["a", "z", "b", "c"], ""))
        self.assertEqual(run("#x:\n"), (0, [], ""))

    def test_random_ones(self):
        for seed in range(15):
            chance = random.Random(seed)
            names = [f"n{number}" for number in range(30)]
            chance.shuffle(names)
            depends = {name: chance.sample(names[:place], min(place, chance.randint(0, 3))) for place, name in enumerate(names) if chance.random() < 0.8}
            text = "".join(f"{name}: {' '.join(needs)}\n" for name, needs in depends.items())
            self.assertEqual(run(text), (0, expect(depends), ""), seed)

    def test_cycles(self):
        for text, cycle in {"a: a\n": "a -> a", "c: b\nb: d\nd: c\nz: c\na:\n": "b -> d -> c -> b", "x: y\ny: x\ny: q\n": "x -> y -> x"}.items():
            self.assertEqual(run(text), (1, [], f"cycle: {cycle}\n"))

    def test_one_of_several_cycles(self):
        code, lines, error = run("a: b c\nb: d\nd: b e\ne: a\nc: c\n")
        self.assertEqual((code, lines), (1, []))
        self.assertIn(error, [f"cycle: {cycle}\n" for cycle in ("b -> d -> b", "c -> c", "a -> b -> d -> e -> a")])

    def test_wrong_lines(self):
        for text, line in {"a:\nb\n": 2, ": x\n": 1, "a: b: c\n": 1, "\n\na b: c\n": 3}.items():
            code, lines, error = run(text)
            self.assertEqual((code, lines, error.startswith(f"f:{line}: "), error.count("\n")), (2, [], True, 1), text)

    def test_large_ones(self):
        chain = [f"t{number:06}" for number in range(60_000)]
        text = "".join(f"{one}: {two}\n" for one, two in zip(chain, chain[1:]))
        self.assertEqual(run(text), (0, chain[::-1], ""))
        wide = "".join(f"{name}: t000000\n" for name in chain[1:])
        self.assertEqual(run(wide), (0, chain, ""))
        code, _, error = run(text + f"{chain[-1]}: {chain[0]}\n")
        self.assertEqual((code, error[:24]), (1, "cycle: t000000 -> t00000"))


unittest.main()
