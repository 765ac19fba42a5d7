import io
import os
import stat
import struct
import sys
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path

sys.path.insert(0, ".")
from unpack import Unsafe, unpack

os.umask(0o022)


class Unpack(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp())
        self.folder = self.root / "made/out"

    def zip(self, *members, compression=zipfile.ZIP_DEFLATED):
        path = self.root / "a.zip"
        with zipfile.ZipFile(path, "w", compression) as archive:
            for name, data in members:
                info = name if isinstance(name, zipfile.ZipInfo) else zipfile.ZipInfo(name)
                archive.writestr(info, data, compress_type=compression)
        return path

    def tar(self, *members, gz=""):
        path = self.root / ("a.tar.gz" if gz else "a.tar")
        with tarfile.open(path, f"w:{gz}") as archive:
            for name, data in members:
                info = tarfile.TarInfo(name) if isinstance(name, str) else name
                info.size = len(data) if info.isreg() else 0
                archive.addfile(info, io.BytesIO(data))
        return path

    def refused(self, archive, error=Unsafe, **options):
        before = sorted(self.root.rglob("*"))
        with self.assertRaises(error):
            unpack(archive, self.folder, **options)
        after = [path for path in sorted(self.root.rglob("*")) if not path.is_dir() or path in before]
        self.assertEqual(after, before)

    def test_good_ones(self):
        members = [("b.txt", b"b"), ("a/c d.txt", b"c"), ("a/e/..f", b""), ("é.txt", b"x" * 5000)]
        names = ["a/c d.txt", "a/e/..f", "b.txt", "é.txt"]
        for number, archive in enumerate([self.zip(*members), self.tar(*members), self.tar(*members, gz="gz")]):
            folder = self.root / f"out{number}"
            self.assertEqual(unpack(archive, folder), names)
            self.assertEqual((folder / "é.txt").read_bytes(), b"x" * 5000)
            self.assertEqual(stat.S_IMODE((folder / "b.txt").stat().st_mode), 0o644)
            self.assertEqual(stat.S_IMODE((folder / "a").stat().st_mode), 0o755)
            self.assertEqual(unpack(str(archive), str(self.root / f"text{number}")), names)

    def test_folders_and_modes(self):
        folder, file = tarfile.TarInfo("d"), tarfile.TarInfo("d/run")
        folder.type, folder.mode, file.mode = tarfile.DIRTYPE, 0o000, 0o6777
        self.assertEqual(unpack(self.tar((folder, b""), (file, b"x")), self.folder), ["d/run"])
        self.assertEqual(stat.S_IMODE((self.folder / "d/run").stat().st_mode), 0o644)
        self.assertEqual(stat.S_IMODE((self.folder / "d").stat().st_mode), 0o755)

    def test_names(self):
        for name in ("/abs", "../up", "a/../../up", "a/..", "a\\b", "..\\up", "C:/x", "x:y"):
            self.refused(self.tar(("good", b"1"), (name, b"2")))
            self.refused(self.zip(("good", b"1"), (name, b"2")))

    def test_special_members(self):
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
            info = tarfile.TarInfo("it")
            info.type, info.linkname = kind, "good"
            self.refused(self.tar(("good", b"1"), (info, b"")))
        link = zipfile.ZipInfo("it")
        link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        self.refused(self.zip(("good", b"1"), (link, b"/etc/passwd")))

    def test_twice_and_both(self):
        for members in ([("a", b"1"), ("b", b""), ("a", b"2")], [("a", b"1"), ("a/b", b"2")], [("a/b", b"1"), ("a", b"2")], [("./a", b"1"), ("a", b"2")]):
            self.refused(self.tar(*members))

    def test_too_much(self):
        self.refused(self.zip(*[(f"f{number}", b"") for number in range(1001)]))
        self.refused(self.tar(("a", b"x" * 600), ("b", b"x" * 600)), limit=1000)
        self.refused(self.zip(("a", b"0" * 50_000_000)))
        self.assertEqual(unpack(self.zip(("a", b"x" * 1000)), self.folder, limit=1000), ["a"])

    def test_sizes_that_lie(self):
        path = self.zip(("a", b"0" * 3_000_000))
        data = bytearray(path.read_bytes())
        for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
            struct.pack_into("<I", data, data.index(signature) + offset, 10)
        path.write_bytes(data)
        self.refused(path, (Unsafe, ValueError), limit=1000)

    def test_what_is_there_stays(self):
        self.folder.mkdir(parents=True)
        (self.folder / "b").write_text("old")
        self.refused(self.tar(("a", b"1"), ("b", b"2")), FileExistsError)
        self.assertEqual((self.folder / "b").read_text(), "old")

    def test_links_that_are_there(self):
        self.folder.mkdir(parents=True)
        outside = self.root / "outside"
        outside.mkdir()
        (self.folder / "d").symlink_to(outside)
        (self.folder / "f").symlink_to(outside / "new")
        self.refused(self.tar(("a", b"1"), ("d/x", b"2")), (Unsafe, FileExistsError))
        self.refused(self.tar(("a", b"1"), ("f", b"2")), (Unsafe, FileExistsError))

    def test_no_archive(self):
        for data in (b"", b"hello", b"PK\x03\x04broken", b"\x1f\x8bbroken"):
            (self.root / "a.zip").write_bytes(data)
            self.refused(self.root / "a.zip", ValueError)


unittest.main()
