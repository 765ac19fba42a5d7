from pathlib import Path

from gong.tools.command import SpillFile


def test_short_output_makes_a_file_only_when_asked(tmp_path):
    spill = SpillFile(str(tmp_path))
    spill.take(b"one\n")
    assert list(tmp_path.iterdir()) == []
    assert Path(spill.keep()).read_bytes() == b"one\n"


def test_long_output_goes_to_a_file_with_what_came_before(tmp_path):
    """M085"""
    spill = SpillFile(str(tmp_path))
    chunks = [b"%05d\n" % n * 100 for n in range(200)]
    for chunk in chunks:
        spill.take(chunk)
    kept = spill.keep()
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("gong-bash-")
    assert path.suffix == ".log"
    assert path.stat().st_mode & 0o777 == 0o600
    assert kept == str(path)
    assert path.read_bytes() == b"".join(chunks)
    assert len(spill._memory) == 0


def test_what_is_kept_is_kept_once(tmp_path):
    spill = SpillFile(str(tmp_path))
    spill.take(b"x" * 60_000)
    assert spill.keep() == spill.keep()
    assert len(list(tmp_path.iterdir())) == 1


def test_what_comes_after_the_limit_is_only_counted(tmp_path, monkeypatch):
    """M085"""
    monkeypatch.setattr("gong.tools.command.KEPT_BYTES", 100_000)
    spill = SpillFile(str(tmp_path))
    for _ in range(3):
        spill.take(b"x\n" * 30_000)
    assert (spill.is_whole, spill.total_bytes, spill.total_lines) == (False, 180_000, 90_000)
    assert Path(spill.keep()).stat().st_size == 100_000


def test_lines_are_counted_exactly(tmp_path):
    """M091"""
    spill = SpillFile(str(tmp_path))
    totals = []
    for chunk in (b"", b"one", b" more\n", b"two\nthree", b"\n", b"\n"):
        spill.take(chunk)
        totals.append(spill.total_lines)
    assert totals == [0, 1, 1, 3, 3, 4]


def test_dropping_leaves_nothing(tmp_path):
    spill = SpillFile(str(tmp_path))
    spill.take(b"x" * 60_000)
    spill.drop()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_refuses_loses_the_file_but_no_count(tmp_path):
    spill = SpillFile(str(tmp_path / "missing"))
    for _ in range(3):
        spill.take(b"x\n" * 30_000)
    assert spill.keep() is None
    assert isinstance(spill.failure, FileNotFoundError)
    assert spill.total_lines == 90_000
