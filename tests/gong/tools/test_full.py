"""Whatever a model got to see only a part of is whole in the result, up to a limit that is said."""

import hashlib

import pytest

from gong.tools.limits import MAX_KEPT_BYTES
from gong.tools.truncation import keep_full_text
from tape.model.entries import join_texts

LONG = "".join(f"{n:06} {'x' * 60}\n" for n in range(3000))
NAMES = [f"name-{n:04}-{'n' * 60}" for n in range(1200)]
WIDE = "needle " + "w" * 2000


def plant(folder):
    (folder / "long.txt").write_text(LONG)
    (folder / "wide.txt").write_text(WIDE + "\n")
    (folder / "many").mkdir()
    for name in NAMES:
        (folder / "many" / name).write_text("here is a needle, " + "y" * 100)


LISTED = "\n".join(NAMES)
FOUND = "\n".join(f"{name}:1: here is a needle, {'y' * 100}" for name in NAMES)
NUMBERED = "".join(f"{n:>4} | {line}\n" for n, line in enumerate(LONG.split("\n")[:-1], 1))


@pytest.mark.parametrize(
    ("tool", "arguments", "full"),
    [
        ("read", {"path": "long.txt"}, LONG),
        ("read", {"path": "long.txt", "offset": 501}, "".join(LONG.splitlines(True)[500:])),
        ("read", {"path": "wide.txt", "limit": 1}, None),
        ("read_file", {"file_path": "long.txt", "limit": 3000}, NUMBERED),
        ("grep", {"pattern": "needle", "path": "many", "limit": 5000}, FOUND),
        ("grep", {"pattern": "needle", "path": "wide.txt"}, f"wide.txt:1: {WIDE}"),
        ("grep", {"pattern": "needle", "path": "many", "limit": 1}, FOUND),
        ("grep_search", {"pattern": "needle", "path": "many", "max_results": 5000}, FOUND),
        (
            "grep_search",
            {"pattern": "needle", "path": "many", "output_mode": "files_with_matches"},
            LISTED,
        ),
        ("find", {"pattern": "name*", "path": "many"}, LISTED),
        ("find", {"pattern": "name*", "path": "many", "limit": 5}, LISTED),
        ("ls", {"path": "many", "limit": 5}, LISTED),
        ("ls", {"path": "many", "limit": 5000}, LISTED),
        ("list_dir", {"path": "many"}, LISTED),
    ],
)
async def test_what_is_cut_is_whole_in_the_result(use_face, folder, tool, arguments, full):
    """Tape.md §3, `full`."""
    plant(folder)
    result = await use_face(tool, **arguments)
    assert result.full == full
    assert not result.is_error


async def test_the_newest_files_come_first_in_the_whole_list_too(use_face, folder):
    plant(folder)
    result = await use_face("glob", pattern="many/*")
    assert sorted(result.full.split("\n")) == [f"many/{name}" for name in NAMES]


async def test_all_failures_of_a_patch_are_in_the_result(use_face, folder):
    (folder / "a.txt").write_text("a\n")
    hunks = "".join(f"*** Delete File: gone{n}\n" for n in range(12))
    result = await use_face("apply_patch", input=f"*** Begin Patch\n{hunks}*** End Patch\n")
    assert "... and 2 more" in join_texts(result.content)
    assert [f"gone{n}:" in result.full for n in range(12)] == [True] * 12


async def test_of_a_very_long_file_the_result_names_what_it_had(use_face, folder):
    text = "é\n" * 2_000_000
    (folder / "big.txt").write_text(text)
    result = await use_face("read", path="big.txt")
    digest = hashlib.sha256((folder / "big.txt").read_bytes()).hexdigest()
    beginning, notice = result.full.split("\n\n[")
    assert text.startswith(beginning)
    assert len(beginning.encode()) in {MAX_KEPT_BYTES, MAX_KEPT_BYTES - 1}
    assert notice == (
        f"{MAX_KEPT_BYTES} of 6000000 bytes: the rest is in big.txt; SHA-256 of all {digest}]"
    )


async def test_one_long_line_that_matches_often_is_not_kept_each_time(use_face, folder):
    (folder / "min.js").write_text(("a" * 600_000 + "\n") * 40)
    result = await use_face("grep", pattern="a", path="min.js")
    assert len(result.full) < 2 * MAX_KEPT_BYTES


def test_a_text_within_the_limit_stays_as_it_is():
    text = "x" * MAX_KEPT_BYTES
    assert (keep_full_text(text), keep_full_text(text + "x")) == (
        text,
        f"{text}\n\n[{MAX_KEPT_BYTES} of {MAX_KEPT_BYTES + 1} bytes: the rest is not saved]",
    )
