import pytest

from gong.tools.patch.parse import (
    IMPLICIT_PATCH_TEXT,
    InvalidPatch,
    PatchCommand,
    find_patch_in_command,
)

PATCH = "*** Begin Patch\n*** Add File: a\n+PATCH\n+$HOME `x` \\\n*** End Patch"


def script(first="apply_patch <<'PATCH'", last="PATCH"):
    return f"{first}\n{PATCH}\n{last}"


@pytest.mark.parametrize(
    ("command", "folder"),
    [
        (script(), None),
        (script("  applypatch << PATCH"), None),
        (script('apply_patch <<"EOF"', "EOF\n\n"), None),
        (script("cd sub/dir && apply_patch <<'PATCH'"), "sub/dir"),
        (script("cd 'a b' && apply_patch <<'PATCH'"), "a b"),
        (script('cd "a b"&&apply_patch <<PATCH'), "a b"),
        (["apply_patch", PATCH], None),
        (["applypatch", PATCH], None),
        (["/bin/bash", "-lc", script()], None),
        (("sh", "-c", script("cd x && apply_patch <<'PATCH'")), "x"),
    ],
)
def test_a_command_that_only_applies_a_patch_is_one(command, folder):
    """M081"""
    assert find_patch_in_command(command) == PatchCommand(PATCH, folder)


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "",
        [],
        ["apply_patch"],
        ["python", "-c", script()],
        ["bash", "-lc", "x", script()],
        script("apply_patch now <<'PATCH'"),
        script("cd a b && apply_patch <<'PATCH'"),
        script("cd a && cd b && apply_patch <<'PATCH'"),
        script("cd a; apply_patch <<'PATCH'"),
        script('cd "$HOME" && apply_patch <<PATCH'),
        script("cd $(pwd) && apply_patch <<'PATCH'"),
        script("cd - && apply_patch <<'PATCH'"),
        script("echo x && apply_patch <<'PATCH'"),
        script("apply_patch <<'PATCH' && rm a"),
        script("apply_patch <<'PATCH' > out"),
        script(last="PATCH\nrm a"),
        script(last="PATCH && rm a"),
        script(last="PATCH\nls\nPATCH"),
        script(last=" PATCH"),
        script("apply_patch <<'PATCH\""),
        "apply_patch <<'PATCH'",
    ],
)
def test_a_command_that_does_anything_else_stays_a_command(command):
    """M081"""
    assert find_patch_in_command(command) is None


@pytest.mark.parametrize("command", [PATCH, [PATCH], ["bash", "-lc", PATCH]])
def test_a_patch_command_that_applies_nothing_is_refused(command):
    assert find_patch_in_command(command) == InvalidPatch(IMPLICIT_PATCH_TEXT)
