"""`gong sessions` and `gong version`."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from pathlib import Path

from gong import __version__

ROOT = Path(__file__).parents[3]


def test_sessions_are_those_of_the_folder(gong, home):
    (home / "here").mkdir()
    (home / "there").mkdir()
    for name in ("here", "there"):
        gong("-m", "offline/rules", "-p", f"list {name}", cwd=home / name)
    (one,) = json.loads(gong("sessions", "list", "--json", cwd=home / "here").stdout)
    assert one["cwd"] == str(home / "here")
    assert len(json.loads(gong("sessions", "list", "--all", "--json").stdout)) == 2
    assert one["id"][:8] in gong("sessions", "show", cwd=home / "here").stdout
    assert "pass --yes" in gong("sessions", "rm", one["id"], code=2).stderr
    gong("sessions", "rm", one["id"], "--yes")
    assert json.loads(gong("sessions", "list", "--json", cwd=home / "here").stdout) == []
    gong("tape", "restore", one["id"])
    assert len(json.loads(gong("sessions", "list", "--all", "--json").stdout)) == 2


def test_a_session_of_a_repository_says_its_branch_and_provider(gong, home):
    """M203: what a list of sessions says of each: its title, branch of git, provider and so on."""
    subprocess.run(["git", "init", "-q", "-b", "work", home / "here"], check=True)
    gong("-m", "offline/rules", "-p", "list .", cwd=home / "here")
    shown = json.loads(gong("sessions", "show", "--json", cwd=home / "here").stdout)
    (listed,) = json.loads(gong("sessions", "list", "--json", cwd=home / "here").stdout)
    for session in (shown, listed):
        facts = [session[name] for name in ("provider", "model", "git_branch", "mode", "todos")]
        assert facts == ["offline", "rules", "work", None, []]  # the default mode is not recorded
        assert session["tokens"] >= session["output_tokens"] >= 0
    assert listed["title"] == "list ."


def test_a_session_names_its_repository_and_the_person(gong, home):
    """The first entry says both; going on in another checkout says what changed."""
    for folder, url in (("here", "git@example.org:team/app.git"), ("fork", "../elsewhere")):
        subprocess.run(["git", "init", "-q", home / folder], check=True)
        git = ["git", "-C", home / folder]
        subprocess.run([*git, "remote", "add", "origin", url], check=True)
        subprocess.run([*git, "config", "user.email", f"{folder}@example.org"], check=True)
    offline = ("-m", "offline/rules", "-p", "list .")
    gong(*offline, cwd=home / "here")
    identity = json.loads(gong("sessions", "list", "--all", "--json").stdout)[0]["id"]
    gong(*offline, "--session", identity, cwd=home / "fork")
    config = home / ".config/gong/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('person = "off"\n')
    gong(*offline, "--session", identity, cwd=home / "here")
    log = json.loads(gong("tape", "log", identity, "--json").stdout)
    said = [entry["data"] for entry in log if entry["type"] in {"start", "meta"}]
    assert [(data.get("repository"), data.get("person")) for data in said] == [
        ("example.org/team/app", "<here@example.org>"),
        (str(home / "elsewhere"), "<fork@example.org>"),
        ("example.org/team/app", None),
    ]
    assert [bool(data.get("machine")) for data in said] == [True, False, False]


def test_version_names_what_a_report_needs(gong):
    """M200: version, commit, build time and what it runs on."""
    told = json.loads(gong("version", "--json").stdout)
    assert told["version"] == __version__
    assert told["sqlite"] == sqlite3.sqlite_version
    if (ROOT / ".git").exists():
        git = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
        head = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
        assert told["commit"] == head
        made = ["git", "-C", str(ROOT), "log", "-1", "--format=%cd", "--date=format-local:%FT%TZ"]
        utc = {**os.environ, "TZ": "UTC"}
        when = subprocess.run(made, capture_output=True, text=True, check=True, env=utc).stdout
        assert told["built"] == when.strip()
        begins = f"gong {__version__} ({head[:12]})\nbuilt {when.strip()}\nPython 3."
        assert gong("version").stdout.startswith(begins)
    assert gong("--version").stdout == f"gong {__version__}\n"
