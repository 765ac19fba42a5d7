from __future__ import annotations

import json


def test_it_says_what_is_there_and_what_is_not(place):
    checks = {one["name"]: one for one in place.json("gong", "doctor", "--json")}
    assert checks["settings"]["state"] == "ok"
    assert checks["keys"]["state"] == "note"
    assert checks["bash"]["state"] == "ok"
    with_key = place.json("gong", "doctor", "--json", ANTHROPIC_API_KEY="sk-secret")
    assert {"name": "anthropic", "state": "ok", "about": "there is a key"} in with_key
    assert "sk-secret" not in json.dumps(with_key)


def test_what_is_wrong_is_named_and_is_the_exit_code(place):
    config = place.home / ".config" / "gong"
    config.mkdir(parents=True)
    (config / "config.toml").write_text("modle = 'x'\n")
    done = place.run("gong", "doctor", code=1)
    assert "modle" in done.stdout


def test_a_file_that_is_named_and_not_there_is_not_ok(place):
    nowhere = str(place.home / "nowhere")
    checks = place.json("gong", "doctor", "--json", GONG_CONFIG_DIR=nowhere)
    (settings,) = (one for one in checks if one["name"] == "settings")
    assert settings["state"] == "note"
    assert settings["about"].startswith(f"GONG_CONFIG_DIR is {nowhere}, which has no config.toml")


def test_a_history_is_judged_by_the_rules_of_every_api(place):
    """M153: what repair makes of a tape keeps each provider's rules."""
    place.run("gong", "chat", "-p", "run echo hi then run echo there")
    checks = place.json("gong", "doctor", "", "--json")
    judged = {one["name"]: one["state"] for one in checks if one["name"].startswith("history")}
    assert len(judged) == 4
    assert set(judged.values()) == {"ok"}


def test_index_terminal_and_network_are_named(place):
    """17: wrong settings are the exit code, and the right one is named."""
    place.run("gong", "chat", "-p", "run echo hi")
    checks = {one["name"]: one for one in place.json("gong", "doctor", "--json")}
    assert checks["index"]["about"] == "1 tape"
    assert {"python", "sqlite", "terminal", "git", "rg", "network"} <= checks.keys()
    done = place.run("gong", "doctor", code=1, HTTPS_PROXY="foo://")
    assert "HTTPS_PROXY is not the address of a proxy, as http://proxy.example:8080" in done.stdout
    fine = place.json("gong", "doctor", "--json", HTTPS_PROXY="http://proxy.example:8080")
    assert {"name": "proxy", "state": "ok", "about": "HTTPS_PROXY: proxy.example"} in fine
    lost = place.run("gong", "doctor", code=1, SSL_CERT_FILE="/nowhere/ca.pem")
    assert "SSL_CERT_FILE is /nowhere/ca.pem, which is not there" in lost.stdout


def test_a_wrong_key_is_named_with_the_right_one(place):
    """17: [keys] is read by the terminal alone, so nothing else would say it before."""
    config = place.home / ".config/gong"
    config.mkdir(parents=True)
    (config / "config.toml").write_text('[keys]\neditr = "ctrl+e"\n')
    done = place.run("gong", "doctor", code=1)
    assert "there is no action editr: did you mean editor?" in done.stdout
    (config / "config.toml").write_text('[keys]\neditor = "ctrl+e"\n')
    checks = {one["name"]: one for one in place.json("gong", "doctor", "--json")}
    assert checks["[keys]"] == {"name": "[keys]", "state": "ok", "about": "editor"}


def test_a_wrong_word_is_named_with_the_allowed_ones(place):
    """17: a wrong setting of [terminal], and the right one."""
    config = place.home / ".config" / "gong"
    config.mkdir(parents=True)
    (config / "config.toml").write_text('[terminal]\nnotify = "bel"\n')
    said = "Invalid enum value 'bel' for terminal.notify: choose one of 'bell', 'off', 'osc9'"
    assert said in place.run("gong", "doctor", code=1).stdout
