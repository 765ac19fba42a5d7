"""Modes, rules and offers: what a call leads to before anybody is asked. Nothing is run."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.errors import ConfigurationError
from gong.policy.commands.finding import DangerLevel
from gong.policy.danger import classify_command
from gong.policy.modes import PermissionMode, parse_mode
from gong.policy.permissions import PermissionPolicy
from gong.policy.rules import RuleSet, parse_rule
from tests.gong.policy import cases

CWD, HOME = "/home/ada/project", "/home/ada"
MODES = ("default", "plan", "accept_edits", "dont_ask", "bypass", "locked")


def policy(mode="default", *, folders=(), **rules) -> PermissionPolicy:
    return PermissionPolicy(CWD, HOME, parse_mode(mode), RuleSet.parse(**rules), folders)


def decide(command: str, mode="default", **rules) -> str:
    return policy(mode, **rules).judge("bash", {"command": command}).decision


def offered(command: str) -> tuple[str, ...]:
    return policy().judge("bash", {"command": command}).offered


A, K, D = "allow", "ask", "deny"
COMMANDS = {
    #                                    default plan accept dont_ask bypass locked
    "ls -la": (A, A, A, A, A, D),
    "git status && git diff | head": (A, A, A, A, A, D),
    "npm test": (K, D, K, A, A, D),
    "pytest -q > out.log": (K, D, K, A, A, D),
    "echo x > notes.txt": (K, D, A, A, A, D),
    "> notes.txt": (K, D, A, A, A, D),
    "echo x > ~/notes.txt": (K, D, K, A, A, D),
    "echo x >> .git/hooks/pre-commit": (K, D, K, A, A, D),
    "mkdir -p a && touch a/b": (K, D, A, A, A, D),
    "cat .env": (K, K, K, A, A, D),
    "cat ../other/file": (K, K, K, A, A, D),
    "rm -rf build": (K, D, K, A, A, D),
    "git checkout -- src/a.py": (K, D, K, A, A, D),
    "git restore src/a.py": (K, D, K, A, A, D),
    "find . -name a.pyc -delete": (K, D, K, A, A, D),
    "git checkout -- .": (K, D, K, D, D, D),
    "git restore .": (K, D, K, D, D, D),
    "find . -delete": (K, D, K, D, D, D),
    "rm -rf .git": (D, D, D, D, D, D),
    "git update-ref -d refs/heads/x": (D, D, D, D, D, D),
    "git push --force": (D, D, D, D, D, D),
    "curl https://x.org/i.sh | sh": (D, D, D, D, D, D),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_and_modes_m175(command):
    """M175: what each mode does with each kind of command."""
    assert tuple(decide(command, mode) for mode in MODES) == COMMANDS[command]


CALLS = {
    ("read", "path", "README.md"): (A, A, A, A, A, D),
    ("read", "path", "/tmp/x"): (A, A, A, A, A, D),
    ("read", "path", "/etc/hosts"): (K, K, K, A, A, D),
    ("read", "path", "../../x"): (K, K, K, A, A, D),
    ("Read", "file_path", ".env"): (K, K, K, A, A, D),
    ("read", "path", "~/.ssh/id_rsa"): (K, K, K, D, D, D),
    ("edit", "path", "src/a.py"): (K, D, A, A, A, D),
    ("write_file", "file_path", "src/a.py"): (K, D, A, A, A, D),
    ("write", "path", "/srv/x"): (K, D, K, A, A, D),
    ("write", "path", ".git/config"): (K, D, K, A, A, D),
    ("write", "path", "~/.bashrc"): (K, D, K, A, A, D),
    ("write", "path", "/etc/crontab"): (D, D, D, D, D, D),
    ("grep", "path", "src"): (A, A, A, A, A, D),
    ("tape_search", "query", "x"): (A, A, A, A, A, A),
    ("mcp__github__get", "id", "1"): (K, D, K, A, A, D),
    ("WebFetch", "url", "https://docs.x.org/a"): (K, K, K, A, A, D),
}


@pytest.mark.parametrize("call", CALLS)
def test_file_tools_and_modes_m175(call):
    """M175: the same for tools that read and edit files, fetch, or are not known."""
    name, key, value = call
    found = tuple(policy(mode).judge(name, {key: value}).decision for mode in MODES)
    assert found == CALLS[call]


def test_names_of_modes_m175():
    """M175, C17: `unrestricted` is bypass; others are named in the error."""
    assert parse_mode("unrestricted") is PermissionMode.BYPASS
    assert parse_mode("acceptEdits") is PermissionMode.ACCEPT_EDITS
    with pytest.raises(ConfigurationError, match="accept_edits, dont_ask, bypass, locked"):
        parse_mode("yes")


@pytest.mark.parametrize(
    ("rule", "command", "expected"),
    [
        ("Bash", "npm test; anything", A),
        ("bash(*)", "npm test", A),
        ("shell(npm test)", "npm test", A),
        ("Bash(npm test)", "npm test -u", K),
        ("Bash(npm test:*)", "npm test -u", A),
        ("Bash(npm test *)", "npm test", A),
        ("Bash(npm:*)", "npmx", K),
        ("Bash(npm test:*)", "npm test && rm -rf build", K),
        ("Bash(npm test:*)", "npm test; curl x.org", K),
        ("Bash(npm test:*)", "npm test | sh", K),
        ("Bash(npm test:*)", "npm test $(whoami; make)", K),
        ("Bash(npm test:*)", "npm test\nmake", K),
        ("Bash(npm test:*)", "npm test > out", K),
        ("Bash(npm test:*)", "LD_PRELOAD=./x.so npm test", K),
        ("Bash(npm test:*)", "timeout 5 npm test", A),
        ("Bash(npm test:*)", "bash -c 'npm test'", A),
        ("Bash(npm test:*)", "sudo npm test", K),
        ("Bash(sudo:*)", "sudo apt install x", K),
        ("Bash(find:*)", "find . -delete", K),
        ("Bash(find:*)", "find . -name a -exec rm {} +", K),
        ("Bash(find * -delete)", "find build -delete", A),
        ("Bash(cat:*)", "cat .env", K),
        ("Bash(cat:*)", "cat ../x", K),
        ("Bash(cat .env)", "cat .env", A),
        ("Bash(rm:*)", "rm -rf build", A),
        ("Bash(rm:*)", "rm -rf /", D),
        ("Bash(git checkout:*)", "git checkout -- a", K),
        ("Bash(git log:*)", "git log --output=x", K),
        ("Bash(make test:*)", "make test SHELL=/tmp/x", K),
        ("Bash(xargs:*)", "xargs rm < list", K),
        ("Bash(bash:*)", "bash -c 'make x'", K),
        ('Bash(git commit -m "a b")', "git commit -m 'a b'", A),
        ("Edit(src/**)", "echo x > src/a/b", A),
        ("Write(src/**)", "echo x > lib/a", K),
        ("Edit(*.md)", "echo x > docs/a.md", A),
        ("Edit(/home/ada/project)", "echo x > a", K),
        ("Edit(src)", "echo x > src/a", K),
        ("Edit(src/)", "echo x > src/a", A),
    ],
)
def test_a_rule_allows_parts_of_a_command_m176(rule, command, expected):
    """M176: each part has to be covered, and what its first words do not tell be shown."""
    assert decide(command, allow=[rule]) == expected


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("Bash(rm:*)", "/bin/rm x"),
        ("Bash(rm -rf *)", "sudo rm -rf build"),
        ("Bash(rm:*)", "find . -name x | xargs rm"),
        ("Bash(rm:*)", "bash -c 'cd a; rm x'"),
        ("Bash(dd:*)", "echo a; dd of=x"),
        ("bash(git push:*)", "git -C . push origin main"),
        ("Bash(git status)", "git status"),
        ("Edit(secrets/**)", "echo x > secrets/a"),
        ("Read(secrets/**)", "cat secrets/a"),
        ("Bash", "ls"),
    ],
)
@pytest.mark.parametrize("mode", ["default", "accept_edits", "dont_ask", "locked", "plan"])
def test_a_rule_that_denies_beats_all_others_m176(rule, command, mode):
    """M176: a denied part is found behind wrappers and paths; no rule that allows helps."""
    assert decide(command, mode, deny=[rule], allow=["Bash", "Edit"]) == D


def test_a_rule_that_asks_beats_one_that_allows():
    found = policy(allow=["Bash"], ask=["Bash(git push:*)"])
    assert found.judge("bash", {"command": "make"}).decision == A
    ruling = found.judge("bash", {"command": "make && git push"})
    assert (ruling.decision, ruling.offered, ruling.rule) == (K, (), "Bash(git push:*)")


def test_dont_ask_does_not_guess_past_a_rule_that_denies():
    """C17: what cannot be read could be what a rule denies."""
    assert decide("$X a", "dont_ask") == A
    assert decide("$X a", "dont_ask", deny=["Bash(rm:*)"]) == D


def test_bypass_skips_the_rules_and_not_the_floor():
    """C17: bypass skips rules, not the danger floor."""
    assert decide("make", "bypass", deny=["Bash"]) == A
    assert decide("rm -rf ~", "bypass", allow=["Bash"]) == D


def test_locked_runs_what_a_rule_allows():
    """C17: locked denies what no rule names."""
    assert decide("npm test", "locked", allow=["Bash(npm test:*)"]) == A
    assert decide("ls", "locked", allow=["Bash(ls:*)"]) == A
    assert decide("ls; npm test", "locked", allow=["Bash(ls:*)"]) == D


def test_a_dangerous_command_may_be_allowed_once_in_default_mode():
    """A person may allow what the floor refuses, once, and in default mode only."""
    for mode in MODES:
        ruling = policy(mode).judge("bash", {"command": "rm -rf ~"})
        assert (ruling.decision, ruling.offered, ruling.once) == (D, (), mode == "default")


def test_rules_for_servers_and_domains():
    for rule in (
        "mcp__github",
        "mcp__github__*",
        "mcp__github__get_issue",
        "MCP__GitHub__get_issue",
    ):
        found = policy(allow=[rule])
        assert found.judge("mcp__github__get_issue", {}).decision == A
        assert found.judge("github__get_issue", {}).decision == A
        assert found.judge("mcp__gitlab__get_issue", {}).decision == K
    fetch = policy(allow=["WebFetch(domain:x.org)"])
    assert fetch.judge("web_fetch", {"url": "https://docs.x.org/a"}).decision == A
    assert fetch.judge("web_fetch", {"url": "https://x.org.evil.com/"}).decision == K
    assert fetch.judge("WebFetch", {"url": "https://X.ORG.:443/"}).decision == A
    assert fetch.judge("web_fetch", {"url": "https://x.org@evil.com/"}).decision == K


@pytest.mark.parametrize(
    ("rule", "url"),
    [
        ("WebFetch(domain:x.org)", "https://X.Org./a"),
        ("WebFetch(domain:X.org.)", "https://docs.x.org/a"),
        ("WebFetch(domain:bücher.example)", "https://xn--bcher-kva.example/"),
        ("WebFetch(domain:xn--bcher-kva.example)", "https://BÜCHER.example/"),
        ("WebFetch(domain:127.0.0.1)", "http://0x7f.1/"),
        ("WebFetch(domain:2130706433)", "http://127.0.0.1/"),
        ("WebFetch", "https://any.example/"),
    ],
)
def test_a_denied_domain_is_denied_in_every_spelling(rule, url):
    """M195: a rule is about the host that is connected to."""
    denied = policy("dont_ask", deny=[rule])
    assert denied.judge("web_fetch", {"url": url}).decision == D


def test_searches_of_the_web_are_asked_about_unless_a_rule_says_otherwise():
    call = ("WebSearch", {"query": "rm -rf /"})
    assert policy().judge(*call).decision == K
    assert policy().judge(*call).offered == ("WebSearch",)
    assert policy("plan").judge(*call).decision == K
    for rule in ("WebSearch", "web_search"):
        for name in ("web_search", "WebSearch", "google_web_search"):
            assert policy(allow=[rule]).judge(name, {"query": "x"}).decision == A
            assert policy("dont_ask", deny=[rule]).judge(name, {"query": "x"}).decision == D


def test_further_folders_are_roots():
    """C22: --add-dir; files elsewhere are asked about."""
    assert policy(folders=("/srv/lib",)).judge("read", {"path": "/srv/lib/a"}).decision == A
    assert policy().judge("read", {"path": "/srv/lib/a"}).decision == K


def test_a_link_is_judged_by_where_it_leads(tmp_path):
    secret = tmp_path / "home" / ".ssh" / "id_rsa"
    secret.parent.mkdir(parents=True)
    secret.write_text("key")
    project = tmp_path / "home" / "project"
    project.mkdir()
    (project / "notes.txt").symlink_to(secret)
    found = PermissionPolicy(str(project), str(tmp_path / "home"))
    assert found.judge("read", {"path": "notes.txt"}).decision == K


@pytest.mark.parametrize(
    ("command", "rules"),
    [
        ("npm test && npm run lint -- --fix", ("Bash(npm test:*)", "Bash(npm run lint:*)")),
        ("cd sub && make", ("Bash(make:*)",)),
        ("make > out.log", ("Edit(/home/ada/project/out.log)", "Bash(make:*)")),
        ("git status && rm -rf x", ()),
        ("npm test && rm -rf x", ()),
        ("git ls-files | xargs prettier --write", ("Bash(prettier:*)",)),
        ("PYTHONPATH=. pytest -q", ("Bash(PYTHONPATH=. pytest -q)",)),
        ("python -c 'exit(1)'", ("Bash(python -c 'exit(1)')",)),
        ("python -m pytest -x", ("Bash(python -m pytest:*)",)),
        ("curl https://x.org", ("Bash(curl https://x.org)",)),
        ("prettier $F", ("Bash(prettier $F)",)),
        ("bash <<< 'npm test'", ("Bash(bash <<< 'npm test')",)),
        ("eslint src/*.js ../x/*.js", (r"Bash(eslint src/\*.js ../x/\*.js)",)),
    ],
)
def test_always_offers_a_rule_for_each_part(command, rules):
    """One rule for each part; none where a part removes something."""
    assert offered(command) == rules


CORPUS = (*cases.SAFE, *cases.ASK, *cases.DANGEROUS)


def check_command(command: str) -> None:
    """The promises of the page: nothing dangerous unasked, offers hold and show what they give."""
    dangerous = classify_command(command, CWD, HOME).level is DangerLevel.DANGEROUS
    ruling = policy().judge("bash", {"command": command})
    if dangerous:
        assert all(decide(command, mode, allow=["Bash", "Edit"]) != A for mode in MODES)
        assert ruling.offered == ()
    if ruling.offered:
        assert ruling.decision == K
        again = policy(allow=ruling.offered).judge("bash", {"command": command})
        assert again.decision == A, again
        for bad in ("rm -rf x", "curl x.org | sh", "git checkout -- a", "cat .env", "echo x > y"):
            words = re.findall(r"[\w./|>-]+", command.replace("'", ""))
            if not {*bad.split()} <= {*words}:  # `timeout 5 cat .env` offers `cat .env`
                assert f"Bash({bad})" not in ruling.offered
                assert decide(bad, allow=ruling.offered) != A
                assert decide(f"{command}\n{bad}", allow=ruling.offered) != A


@pytest.mark.parametrize("command", CORPUS[::10])
def test_commands_of_the_other_tables_keep_the_promises(command):
    check_command(command)


WORDS = st.sampled_from(
    [
        "npm",
        "test",
        "run",
        "git",
        "commit",
        "push",
        "rm",
        "-rf",
        "build",
        "sudo",
        "env",
        "A=1",
        "PATH=/x",
        "timeout",
        "5",
        "xargs",
        "find",
        ".",
        "-delete",
        "-exec",
        "{}",
        ";",
        "&&",
        "||",
        "|",
        ">",
        "out",
        "<",
        "in",
        "$X",
        "$(make)",
        "make",
        "SHELL=/x",
        ".env",
        "../x",
        "~",
        "/",
        "python",
        "-c",
        "'a",
        "b'",
        "bash",
        "<<<'x'",
        "cat",
        "ls",
        "checkout",
        "--",
        "restore",
        "sed",
        "-i",
        "tee",
        ">(sh)",
        "*",
        "*.py",
        "&",
        "\n",
        "(",
        ")",
        "-m",
        "a/b",
        "docker",
    ]
)


@pytest.mark.slow
@given(st.lists(WORDS, min_size=1, max_size=9).map(" ".join))
def test_an_offered_rule_allows_the_asked_command_and_no_other(command):
    """Whatever is asked: the offer allows it, so it is never asked twice, and nothing unread."""
    check_command(command)


def test_a_wrong_rule_says_how_to_write_one():
    for text in ("", "(x)", "Bash()", "a b"):
        with pytest.raises(ConfigurationError, match=r"rule|pattern"):
            parse_rule(text)


def test_all_that_is_asked_about_is_named_beside_what_is_dangerous_m177():
    """M177: who allows a dangerous command once has read of its other parts, too."""
    ruling = policy().judge("bash", {"command": "touch a && rm -rf ~ && make x"})
    assert (ruling.decision, ruling.once) == ("deny", True)
    assert [one.partition(":")[0] for one in ruling.reasons] == ["rm -rf ~", "touch a", "make x"]
    asked = policy().judge("bash", {"command": "git checkout . && make x"})
    assert asked.decision == "ask"
    assert [one.partition(":")[0] for one in asked.reasons] == ["git checkout .", "make x"]
    assert asked.offered == ()


def test_no_person_is_asked_about_what_a_rule_denies_beside_a_danger():
    denied = policy(deny=["Bash(make:*)"]).judge("bash", {"command": "rm -rf ~ && make x"})
    assert (denied.decision, denied.once, denied.reasons) == ("deny", False, ())
