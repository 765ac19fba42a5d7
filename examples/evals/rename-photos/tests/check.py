import os
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path("rename.sh").resolve()
DAY = 86_400 * 10**9
T = 20_000 * DAY  # 2024-10-04


class Rename(unittest.TestCase):
    def setUp(self):
        self.dir = Path(tempfile.mkdtemp()) / "my photos"
        self.dir.mkdir()

    def photos(self, files):
        for name, time in files.items():
            path = os.path.join(os.fsencode(self.dir), name if isinstance(name, bytes) else name.encode())
            with open(path, "wb") as file:
                file.write(os.path.basename(path))
            os.utime(path, ns=(time, time))

    def run_script(self, *args):
        environment = {**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(["bash", SCRIPT, *args, self.dir], capture_output=True, timeout=30, env=environment, cwd=self.dir.parent)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout

    def tree(self):
        root = os.fsencode(self.dir)
        return {name: open(os.path.join(root, name), "rb").read() for name in sorted(os.listdir(root)) if os.path.isfile(os.path.join(root, name))}

    def test_days_numbers_and_endings(self):
        self.photos({"b.JPG": T + 5, "a.jpeg": T + 6, "c d.Png": T + 4, "e.jpg": T - 1, "z.txt": T, ".hidden.jpg": T, "x.jpg.bak": T})
        self.run_script()
        wanted = {b"2024-10-03_001.jpg": b"e.jpg", b"2024-10-04_001.png": b"c d.Png", b"2024-10-04_002.jpg": b"b.JPG",
                  b"2024-10-04_003.jpg": b"a.jpeg", b".hidden.jpg": b".hidden.jpg", b"x.jpg.bak": b"x.jpg.bak", b"z.txt": b"z.txt"}
        self.assertEqual(self.tree(), wanted)
        self.run_script()
        self.assertEqual(self.tree(), wanted)
        self.assertEqual(self.run_script("-n"), b"")

    def test_unusual_names(self):
        names = [b"-n.jpg", b"a\nb.jpg", b"\xff.jpg", b"*.jpg", b" .jpg", b"$HOME.jpg", b"'\".jpg", b"back\\slash.jpg"]
        self.photos({name: T + number for number, name in enumerate(names)})
        self.run_script()
        self.assertEqual(list(self.tree().values()), names)
        self.assertEqual(list(self.tree()), [b"2024-10-04_%03d.jpg" % (number + 1) for number in range(len(names))])

    def test_equal_times_by_bytes(self):
        self.photos({"b.jpg": T, "B.jpg": T, "é.jpg": T, "a.png": T})
        self.run_script()
        self.assertEqual(list(self.tree().values()), [b"B.jpg", b"a.png", b"b.jpg", "é.jpg".encode()])

    def test_names_change_places(self):
        self.photos({"2024-10-04_001.jpg": T + 9, "2024-10-04_002.jpg": T + 1, "2024-10-04_003.jpg": T + 5})
        self.run_script()
        self.assertEqual(list(self.tree().values()), [b"2024-10-04_002.jpg", b"2024-10-04_003.jpg", b"2024-10-04_001.jpg"])

    def test_others_keep_their_names(self):
        (self.dir / "2024-10-04_001.jpg").mkdir()
        (self.dir / "2024-10-04_003.jpg").symlink_to("nowhere")
        (self.dir / "sub").mkdir()
        self.photos({"a.jpg": T + 1, "b.jpg": T + 2, "sub/c.jpg": T})
        self.run_script()
        self.assertEqual(self.tree(), {b"2024-10-04_002.jpg": b"a.jpg", b"2024-10-04_004.jpg": b"b.jpg"})
        self.assertTrue((self.dir / "sub/c.jpg").exists())

    def test_only_a_look(self):
        self.photos({"b.jpg": T + 5, "a b.jpeg": T + 6, "2024-10-04_003.jpg": T + 7})
        before = self.tree()
        self.assertEqual(self.run_script("-n"), b"b.jpg -> 2024-10-04_001.jpg\na b.jpeg -> 2024-10-04_002.jpg\n")
        self.assertEqual(self.tree(), before)

    def test_an_empty_folder(self):
        self.run_script()
        self.assertEqual(self.tree(), {})


unittest.main()
