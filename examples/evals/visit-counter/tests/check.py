import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

PROGRAM = str(Path("visits.py").resolve())


def start(file, page):
    command = [sys.executable, "-S", PROGRAM, file, page]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Visits(unittest.TestCase):
    def setUp(self):
        self.dir = Path(tempfile.mkdtemp())
        self.file = self.dir / "counts.json"

    def visit(self, page="home", file=None):
        process = start(file or self.file, page)
        out, errors = process.communicate(timeout=20)
        return process.returncode, out, errors

    def test_one_after_another(self):
        made = [self.visit(page) for page in ("home", "über", "home", "")]
        self.assertEqual(made, [(0, "1\n", ""), (0, "1\n", ""), (0, "2\n", ""), (0, "1\n", "")])
        self.assertEqual(json.loads(self.file.read_text("utf-8")), {"home": 2, "über": 1, "": 1})
        self.assertTrue(all(name.startswith("counts.json") for name in os.listdir(self.dir)))

    def test_no_call_is_lost_and_no_reader_sees_a_part(self):
        stop, faults = threading.Event(), []

        def read():
            while not stop.is_set():
                try:
                    assert isinstance(json.loads(self.file.read_text()), dict)
                except FileNotFoundError:
                    pass
                except Exception as error:  # noqa: BLE001
                    faults.append(repr(error))

        reader = threading.Thread(target=read)
        reader.start()
        processes = [start(self.file, "home") for _ in range(40)]
        counts = [int(process.communicate(timeout=60)[0] or -1) for process in processes]
        stop.set()
        reader.join()
        self.assertEqual((sorted(counts), faults[:3]), (list(range(1, 41)), []))

    def test_a_kill_neither_breaks_nor_blocks(self):
        self.file.write_text(json.dumps({f"page {number}": number for number in range(20_000)}))
        for number in range(12):
            process = start(self.file, "home")
            time.sleep(0.02 + number * 0.012)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            counts = json.loads(self.file.read_text())
            self.assertEqual(counts["page 19999"], 19_999)
        self.assertEqual(self.visit()[0], 0)

    def test_mode_and_link_stay(self):
        real = self.dir / "elsewhere/real.json"
        real.parent.mkdir()
        real.write_text('{"home": 4}')
        real.chmod(0o640)
        self.file.symlink_to("elsewhere/real.json")
        self.assertEqual(self.visit(), (0, "5\n", ""))
        self.assertTrue(self.file.is_symlink())
        self.assertEqual((stat.S_IMODE(real.stat().st_mode), real.read_text().replace(" ", "")), (0o640, '{"home":5}'))

    def test_foreign_content_stays(self):
        for text in ("", "{", "[]", '{"home": "x"}', '{"a": 1.5}', '{"home": true}', "\xff"):
            self.file.write_text(text, "latin-1")
            code, out, errors = self.visit()
            self.assertEqual((code, out, errors.count("\n")), (1, "", 1), text)
            self.assertEqual(self.file.read_text("latin-1"), text)


unittest.main()
