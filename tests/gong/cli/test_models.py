import json

import pytest


def test_models_are_listed_with_prices_and_who_wants_a_key(gong):
    """M183: gong models [--provider P]."""
    told = gong("models", "--provider", "anthropic").stdout
    head, sonnet = told.split("\n")[0], next(line for line in told.split("\n") if " sonnet" in line)
    assert head.split() == ["MODEL", "WINDOW", "INPUT", "OUTPUT", "CAN", "ALIASES"]
    assert sonnet.split()[:5] == ["anthropic/claude-sonnet-5-5", "1", "M", "$2", "$10"]
    assert "openai" not in told
    assert "Need a key (gong auth login NAME): anthropic" in told
    assert (
        "Ready: anthropic"
        in gong("models", "--provider", "anthropic", ANTHROPIC_API_KEY="k").stdout
    )


def test_the_list_is_json_for_programs(gong):
    rows = json.loads(gong("models", "--json").stdout)
    assert len(rows) > 20
    sonnet = next(row for row in rows if "sonnet" in row["aliases"])
    assert (sonnet["provider"], sonnet["price"]["input"], sonnet["key"]) == (
        "anthropic",
        2.0,
        False,
    )


def test_one_model_is_shown_by_any_word_that_m_takes(gong):
    """M143, M183: gong models show ID."""
    assert "claude-opus-5-5" in gong("models", "show", "opus").stdout
    unknown = json.loads(gong("models", "show", "claude-next", "--json").stdout)
    assert (unknown["id"], unknown["price"]) == ("anthropic/claude-next", None)
    local = gong("models", "show", "ollama/x").stdout
    assert "input $0" in local
    assert "none needed" in local
    assert "did you mean opus?" in gong("models", "show", "opsu", code=2).stderr
    assert "no provider 'x'" in gong("models", "--provider", "x", code=3).stderr


def test_the_users_own_providers_and_models_are_there(gong, home):
    """M183: a few lines of config.toml."""
    (home / ".config/gong/config.toml").write_text(
        """
        [aliases]
        big = "mine/big-1"
        [providers.mine]
        api = "openai-chat"
        base_url = "https://llm.example/v1"
        keys = ["MINE_KEY"]
        [models."mine/big-1"]
        context_window = 9000
        price = { input = 1.5, output = 3 }
        """
    )
    assert "mine/big-1" in gong("models", "--provider", "mine").stdout
    shown = gong("models", "show", "big", MINE_KEY="abcdefgh-ijkl-9876").stdout
    assert "$1.5" in shown
    assert "…9876 from MINE_KEY" in shown
    assert "abcdefgh" not in shown


def test_a_wrong_table_is_one_line_with_file_and_key(gong, home):
    (home / ".config/gong/config.toml").write_text('[providers.mine]\napi = "smtp"\n')
    told = gong("models", code=2).stderr
    assert "config.toml: providers.mine: " in told
    assert len(told.strip().split("\n")) == 1


def test_an_alias_answers_and_every_answer_says_what_it_cost(gong, home):
    """M143, M183: -m takes an alias; cost from usage and price, in the entry and summed up."""
    script = home / "script.json"
    usage = {"input": 1000, "output": 100, "cache_read": 5000}
    script.write_text(
        json.dumps(
            [{"tool_calls": [{"name": "ls"}], "usage": usage}, {"text": "ok", "usage": usage}]
        )
    )
    (home / ".config/gong/config.toml").write_text(
        f"""
        [aliases]
        cheap = "scripted/{script}"
        [models."scripted/{script}"]
        price = {{ input = 2, output = 10, cache_read = 0.2 }}
        """
    )
    told = gong("chat", "-p", "x", "-m", "cheap", "--output-format", "stream-json").stdout
    first, *_, last = map(json.loads, told.strip().split("\n"))
    assert first["model"] == f"scripted/{script}"
    assert last["cost"] == {"currency": "USD", "amount": pytest.approx(0.008)}
    entries = gong("tape", "log", "--json").stdout
    assert entries.count('"amount":0.004') == 2


def test_what_is_not_served_says_so_in_the_same_words_everywhere(gong, home):
    told = (
        "copilot is not served yet: its logins are for programs that it has approved; use another "
        "provider"
    )
    for argv in (
        ("chat", "-m", "copilot", "-p", "hi"),
        ("chat", "-m", "copilot/opus", "-p", "hi"),
        ("models", "show", "copilot/opus"),
        ("models", "show", "copilot"),
        ("auth", "login", "copilot"),
    ):
        assert gong(*argv, code=2).stderr == f"gong: {told}\n"
    (home / ".config/gong/config.toml").write_text('model = "copilot/opus"')
    assert told in gong("doctor", code=1).stdout
