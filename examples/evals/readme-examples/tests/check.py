import re
import subprocess
import unittest
from pathlib import Path

HERE = Path(__file__).parent
README = Path("README.md").read_text()


def examples():
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def words(command):
    return set(re.findall(r"[\w.]+", command))


class Readme(unittest.TestCase):
    def test_the_program_is_what_it_was(self):
        self.assertEqual(Path("units.py").read_text(), (HERE / "units.py").read_text())

    def test_every_example_is_true(self):
        for command, output in examples():
            done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20)
            self.assertEqual(done.stdout, output, command)

    def test_examples_show_what_they_did(self):
        commands = [command for command, _ in examples()]
        self.assertEqual(len(commands), 5)
        kept = [{"3.5km"}, {"6ft", "cm", "0"}, {"1mi", "km", "bare"}, {"1km", "4", "0", "bare"}, {"3parsec"}]
        for command, wanted in zip(commands, kept):
            self.assertLessEqual(wanted | {"units.py"}, words(command))
        outputs = [output for _, output in examples()]
        self.assertEqual(outputs[1:3], ["183 cm\n", "1.61\n"])
        self.assertIn("250", outputs[3])

    def test_the_table_has_every_option(self):
        self.assertEqual(re.findall(r"^\| *`(--[\w-]+)[^`]*` *\| *\S.*\|", README, re.MULTILINE), ["--to", "--digits", "--bare"])

    def test_the_exit_codes(self):
        sentence = next(line for line in README.split("\n") if "exit code" in line.lower())
        self.assertEqual(sorted(set(re.findall(r"`(\d+)`", sentence))), ["0", "2", "3", "4"])


unittest.main()
