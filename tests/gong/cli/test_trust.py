import json

HOOKS = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "make -s lint"}]}]}}'


def test_a_project_is_shown_trusted_and_revoked(gong, home):
    """`gong trust` shows what would run; --yes and --revoke answer."""
    assert "brings nothing" in gong("trust").stdout
    work = home / "work"
    (work / ".gong").mkdir(parents=True)
    (work / ".gong/hooks.json").write_text(HOOKS)
    assert gong("trust", cwd=work).stdout == (
        f"{work} brings:\n"
        "  STATE  KIND   FILE\n"
        "  new    hooks  .gong/hooks.json\n"
        "      runs at Stop: make -s lint\n"
        "What is not trusted has no effect. To trust it, after reading it: gong trust --yes\n"
    )
    assert "All of it is trusted" in gong("trust", "--yes", cwd=work).stdout
    shown = json.loads(gong("trust", "--json", cwd=work).stdout)
    assert (shown["project"], shown["trusted"]) == (str(work), True)
    assert shown["parts"][0]["state"] == "trusted"
    assert "new    hooks" in gong("trust", "--revoke", cwd=work).stdout
    assert "cannot be combined" in gong("trust", "--yes", "--revoke", code=2, cwd=work).stderr


def test_what_a_project_writes_cannot_move_the_cursor(gong, home):
    work = home / "work"
    (work / ".gong").mkdir(parents=True)
    (work / ".gong/hooks.json").write_text(HOOKS.replace("make", "\\u001b[2Jmake"))
    assert "\x1b" not in gong("trust", cwd=work).stdout
