import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

NAMES = ["b", "a", "d", "c", "é x"]


class Worker(unittest.TestCase):
    def setUp(self):
        root = Path(tempfile.mkdtemp())
        self.queue, self.done = root / "queue", root / "done"
        self.queue.mkdir()
        self.done.mkdir()
        for name in NAMES:
            (self.queue / name).write_text(f"text of {name} \u00e9\n" * 50)

    def start(self, pause):
        command = [sys.executable, "worker.py", self.queue, self.done, "--pause", str(pause)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def finished(self):
        made = {}
        for name in set(NAMES) & set(os.listdir(self.done)):
            self.assertEqual((self.done / name).read_text(), f"TEXT OF {name.upper()} \u00c9\n" * 50)
            made[name] = True
        return sorted(made)

    def wait_for(self, count):
        end = time.monotonic() + 20
        while len(self.finished()) < count:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def test_the_whole_queue(self):
        out, errors = self.start(0).communicate(timeout=20)
        self.assertEqual((out, errors), ("done 5\n", ""))
        self.assertEqual((self.finished(), os.listdir(self.queue)), (sorted(NAMES), []))

    def test_a_signal_lets_the_file_finish(self):
        for number, (sent, times) in enumerate(((signal.SIGTERM, 1), (signal.SIGINT, 2))):
            with self.subTest(sent):
                self.setUp()
                process = self.start(0.4)
                self.wait_for(1)
                for _ in range(times):
                    process.send_signal(sent)
                    time.sleep(0.05)
                out, errors = process.communicate(timeout=20)
                self.assertEqual((process.returncode, errors), (0, ""))
                made = self.finished()
                self.assertEqual(out, f"stopped after {len(made)}\n")
                self.assertIn(made, (["a", "b"], ["a"]))
                self.assertEqual(sorted(os.listdir(self.queue)), sorted(set(NAMES) - set(made)))

    def test_nothing_is_half_done_after_a_kill(self):
        process = self.start(0.3)
        self.wait_for(1)
        time.sleep(0.1)
        process.kill()
        process.wait()
        self.finished()
        self.assertEqual(set(os.listdir(self.queue)) | set(self.finished()), set(NAMES))
        out, _ = self.start(0).communicate(timeout=20)
        self.assertTrue(out.startswith("done "))
        self.assertEqual((self.finished(), os.listdir(self.queue)), (sorted(NAMES), []))

    def test_a_file_that_is_no_text(self):
        (self.queue / "bad").write_bytes(b"caf\xe9")
        process = self.start(0)
        out, errors = process.communicate(timeout=20)
        self.assertEqual((process.returncode, out, os.listdir(self.queue)), (1, "done 5\n", ["bad"]))
        self.assertIn("bad", errors)
        self.assertNotIn("Traceback", errors)
        self.assertFalse((self.done / "bad").exists())


unittest.main()
