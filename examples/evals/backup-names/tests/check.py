import os
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path("backup.sh").resolve()
NAMES = [b"plain.txt", b"with blank.txt", b"two\nlines", b"quote'\"d", b"*", b"-n", b"--help", b"\xff\xfe",
         b".hidden", b"dir with blank/a b", b".d/x", b"-e/-f", b"deep/er/est/$HOME", b" lead", b"trail ", b"end\n"]


def run(*args, cwd):
    return subprocess.run(["bash", SCRIPT, *args], cwd=cwd, capture_output=True, timeout=30)


def fill(root, content=b"text of %b"):
    for name in NAMES:
        file = os.path.join(os.fsencode(root), name)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "wb") as out:
            out.write(content % name)
        os.utime(file, (1_600_000_000, 1_600_000_000))


def tree(root):
    root = os.fsencode(root)
    return {
        os.path.relpath(os.path.join(folder, name), root): open(os.path.join(folder, name), "rb").read()
        for folder, _, names in os.walk(root) for name in names
    }


class Backup(unittest.TestCase):
    def setUp(self):
        self.dir = Path(tempfile.mkdtemp())
        self.source, self.target = self.dir / "my files", self.dir / "-to *"
        fill(self.source)

    def backup(self, *args):
        return run(*(args or (self.source.name, self.target.name)), cwd=self.dir)

    def test_every_name_is_copied_once(self):
        first, second = self.backup(), self.backup()
        self.assertEqual((first.returncode, first.stdout), (0, b"copied %d\n" % len(NAMES)), first.stderr)
        self.assertEqual((second.returncode, second.stdout), (0, b"copied 0\n"), second.stderr)
        self.assertEqual(tree(self.target), tree(self.source))

    def test_content_counts_and_not_the_time(self):
        self.backup()
        (self.source / "plain.txt").write_text("changed")
        os.utime(self.source / "plain.txt", (1, 1))
        os.utime(self.source / "*", None)
        self.assertEqual(self.backup().stdout, b"copied 1\n")
        self.assertEqual((self.target / "plain.txt").read_text(), "changed")

    def test_mode_and_time_are_kept(self):
        (self.source / "plain.txt").chmod(0o750)
        self.backup()
        made = (self.target / "plain.txt").stat()
        self.assertEqual((made.st_mode & 0o777, int(made.st_mtime)), (0o750, 1_600_000_000))

    def test_links_and_empty_folders_stay(self):
        (self.source / "empty/er").mkdir(parents=True)
        (self.source / "link").symlink_to("plain.txt")
        (self.source / "out").symlink_to("/etc")
        self.assertEqual(self.backup().stdout, b"copied %d\n" % len(NAMES))
        self.assertFalse({"empty", "link", "out"} & set(os.listdir(self.target)))

    def test_one_that_fails_does_not_stop_the_others(self):
        (self.target / "plain.txt").mkdir(parents=True)
        done = self.backup()
        self.assertEqual((done.returncode, done.stdout), (1, b"copied %d\n" % (len(NAMES) - 1)))
        self.assertIn(b"plain.txt", done.stderr)
        self.assertEqual(os.listdir(self.target / "plain.txt"), [])

    def test_bad_arguments_make_nothing(self):
        for args in (("nowhere", "made"), ("my files/plain.txt", "made"), ("my files",), ("my files", "made", "x")):
            self.assertEqual(self.backup(*args).returncode, 2, args)
        self.assertFalse((self.dir / "made").exists())

    def test_absolute_names(self):
        self.assertEqual(self.backup(self.source, self.target).returncode, 0)
        self.assertEqual(len(tree(self.target)), len(NAMES))


unittest.main()
