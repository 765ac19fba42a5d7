"""What is said of commands. Every command here is a string to be judged; none is ever run."""

from __future__ import annotations

import shlex
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gong.policy.commands import judge
from gong.policy.commands.finding import CommandFinding, DangerLevel
from gong.policy.commands.tables import load_tables
from gong.policy.danger import check_command, classify_command
from gong.shell.parser import parse_command_line
from tests.gong.policy import cases, spelled_cases

if TYPE_CHECKING:
    from collections.abc import Sequence

ASK = [*cases.ASK, *spelled_cases.ORDINARY_CODE]
DANGEROUS = [*cases.DANGEROUS, *spelled_cases.CODE]
CWD, HOME = "/home/ada/project", "/home/ada"


BATCH = 100
"""How many commands one test judges: a test of its own takes longer than the judgement."""


def judged(command: str) -> CommandFinding:
    return classify_command(command, CWD, HOME)


def in_batches(commands: Sequence[str]) -> pytest.MarkDecorator:
    """Give a test the commands in lists, each named by its place in the table."""
    places = range(0, len(commands), BATCH)
    lists = [commands[place : place + BATCH] for place in places]
    return pytest.mark.parametrize("commands", lists, ids=map(str, places))


@in_batches(cases.SAFE)
def test_commands_that_only_read_are_safe(commands):
    findings = {command: judged(command) for command in commands}
    assert findings == dict.fromkeys(commands, CommandFinding(DangerLevel.SAFE))


@in_batches(ASK)
def test_commands_that_may_change_something_are_asked_about(commands):
    findings = {command: judged(command) for command in commands}
    levels = {command: (found.level, bool(found.reason)) for command, found in findings.items()}
    assert levels == dict.fromkeys(commands, (DangerLevel.ASK, True))


@in_batches(DANGEROUS)
def test_commands_whose_damage_cannot_be_made_good_are_dangerous(commands):
    findings = {command: judged(command) for command in commands}
    levels = {command: (found.level, bool(found.reason)) for command, found in findings.items()}
    assert levels == dict.fromkeys(commands, (DangerLevel.DANGEROUS, True))


@pytest.mark.parametrize("command", spelled_cases.COMMANDS)
def test_a_dangerous_command_is_one_however_it_is_spelled(command):
    spelled = [*spelled_cases.list_spellings(command)]
    assert [one for one in spelled if judged(one).level is not DangerLevel.DANGEROUS] == []


@pytest.mark.parametrize("command", load_tables().words.literal)
def test_the_first_list_of_dangerous_commands_is_kept_m097(command):
    """M097: each line of the list as a command; as words of another command it is harmless."""
    assert judged(command).level is DangerLevel.DANGEROUS
    assert judged(f"ls && {command}").level is DangerLevel.DANGEROUS
    assert judged(f"echo {shlex.quote(command)}").level is DangerLevel.SAFE


def test_a_dangerous_command_is_refused_with_the_text_of_m097():
    """M097: the words of the refusal in each language; then what is to blame, to act on."""
    verdict = check_command("cd src && sudo rm -rf / && ls", CWD, HOME)
    assert not verdict.allowed
    assert verdict.text == (
        "Error: dangerous command blocked. Its damage may be irreversible."
        "\nsudo rm -rf /: removes a system, home or workspace folder."
        " Find another way, or ask the user to run it."
    )
    chinese = check_command("rm -rf /", CWD, HOME, "zh").text
    assert chinese.startswith("错误: 危险命令已被拦截。此命令可能造成不可逆损害。\n")


@pytest.mark.parametrize("command", ["echo safe", "echo reboot", "npm test", "rm -rf build", "if"])
def test_what_is_not_dangerous_is_above_the_floor_m097(command):
    """M097: the floor decides only about danger; asking is for the rules above it."""
    assert check_command(command, CWD, HOME).allowed


def test_the_example_of_the_module_gets_the_verdict_it_tells():
    found = judged('x=$(pwd); cd .. && sudo rm -rf "$x"')
    reason, part = "removes a system, home or workspace folder", 'sudo rm -rf "$x"'
    assert (found.level, found.reason, found.part) == (DangerLevel.DANGEROUS, reason, part)
    told = " ".join((judge.__doc__ or "").split())
    assert f'DANGEROUS, "{reason}", part: {part}' in told


def test_the_part_that_is_the_reason_is_named():
    assert judged("ls; cat a | grep b && x=$(git reset --hard); pwd") == CommandFinding(
        DangerLevel.DANGEROUS, "git reset --hard", "discards changes that no commit has"
    )
    assert judged("ls; make -j4\npwd") == CommandFinding(
        DangerLevel.ASK, "make -j4", "make is not one of the commands that only read"
    )
    assert judged("ls > a").part == "> a"


def test_a_long_part_is_shown_on_one_short_line():
    part = judged("make \\\n" + "a " * 500).part
    assert len(part) == 120
    assert part.startswith("make \\ a a a")
    assert part.endswith("…")


def test_paths_are_judged_against_the_folders_that_are_given():
    assert classify_command("rm -rf *", "/", "/root").level is DangerLevel.DANGEROUS
    assert classify_command("rm -rf build", "/", "/root").level is DangerLevel.DANGEROUS
    assert classify_command("rm -rf build", "/usr/src/app", "/root").level is DangerLevel.ASK
    assert (
        classify_command("rm -rf /usr/src/app/build", "/usr/src/app", "/root").level
        is DangerLevel.ASK
    )
    assert classify_command("rm -rf /root/app/build", "/root/app", "/root").level is DangerLevel.ASK
    assert classify_command("echo a > /root/app/b", "/root/app", "/root").level is DangerLevel.ASK
    assert classify_command("cat ../lib/a", "/src/app", "/root").level is DangerLevel.ASK
    roots = ("/src/lib",)
    assert classify_command("cat ../lib/a", "/src/app", "/root", roots).level is DangerLevel.SAFE


@pytest.mark.parametrize("command", ["less -k keys a", "vim a", "top"])
def test_what_waits_for_keys_is_asked_about_with_advice(command):
    program = command.split()[0]
    assert judged(command).reason == (
        f"{program} waits for keys: use a command that prints and ends, such as cat"
    )


@pytest.mark.parametrize(
    "command",
    [
        "alias a='a; a; a; a; a; a; a; a'; a",
        "echo '" + "bash a.sh; " * 50 + "' > a.sh; bash a.sh",
        "echo 'bash b' > a; echo 'bash a' > b; bash a",
    ],
)
def test_what_names_itself_is_followed_once(command):
    assert judged(command).level is DangerLevel.ASK


def test_without_a_grammar_everything_is_asked_about():
    script = (
        "import sys; sys.modules['tree_sitter_bash'] = None\n"
        "from gong.policy.danger import classify_command\n"
        "print(*(classify_command(one, '/w', '/h').level.name for one in ('ls', 'rm -rf /', '')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["ASK", "ASK", "ASK"]


def test_the_grammar_is_loaded_only_for_a_command():
    script = "import sys, gong.policy.danger; print('tree_sitter' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    "command",
    [
        *("(" * 5000, "$(" * 3000 + ")" * 3000, "{" * 2000, "if " * 2000, '"' * 5001, "`" * 3001),
        *("bash -c " * 1000, "cat <<A\n" * 300, "eval " * 500 + "ls", "sudo " * 2000 + "ls"),
        "".join(f"x{i}=1;" for i in range(50)) + "cat " + " ".join(f"$x{i}" for i in range(50)),
        "cat " + "{a,b}" * 40,
    ],
)
def test_what_is_too_deep_to_follow_is_asked_about(command):
    assert judged(command).level is DangerLevel.ASK


def test_danger_is_found_at_the_end_of_a_long_command():
    for joint in (" | ", " && ", "; ", "\n"):
        assert judged(joint.join(["cat a"] * 200 + ["rm -rf /"])).level is DangerLevel.DANGEROUS
        assert judged(joint.join(["cat a"] * 200)).level is DangerLevel.SAFE
    assert judged("curl x | " + "cat | " * 200 + "sh").level is DangerLevel.DANGEROUS
    assert judged("echo '" + "x" * 200_000 + "'; rm -rf /").level is DangerLevel.DANGEROUS


ALL = [*cases.SAFE, *ASK, *DANGEROUS]
WRAPPERS = [
    *("bash -c {}", "bash -lc {}", "sh -c {}", "eval {}", "sudo bash -c {}", "nohup sh -c {}"),
    *("env A=1 sh -c {}", "timeout 5 bash -c {}", "xargs -0 sh -c {}", "command bash -c {}"),
    *("nice -n 5 bash -c {}", "find . -exec sh -c {} \\;", "echo $(bash -c {})", "ssh host {}"),
    *("if true; then bash -c {}; fi", "( bash -c {} )", "f() {{ bash -c {}; }}; f"),
    *("ls | bash -c {} | cat", "while read x; do bash -c {}; done", "bash -c {} &"),
    *('x={}; eval "$x"', "bash <<< {}", "echo {} | sh"),
]


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(ALL), st.lists(st.sampled_from(WRAPPERS), min_size=1, max_size=2))
def test_a_wrapper_never_lowers_the_level(command, wrappers):
    before = judged(command).level
    for wrapper in wrappers:
        command = wrapper.format(shlex.quote(command))
    assert judged(command).level >= before, command


def _alone(command: str) -> bool:
    """Whether a command says nothing about the commands beside it."""
    stateful = ("cd ", "cd\n", "=", "alias", "set", "()", "<<", "#", "pushd", "popd", "declare")
    ends = command.endswith(("&", "\\", ";", "$")) or not command
    return (
        parse_command_line(command).whole
        and not ends
        and not any(one in command for one in stateful)
    )


@cache
def list_alone() -> list[str]:
    return [command for command in ALL if _alone(command) and not command.startswith("read ")]


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.deferred(lambda: st.sampled_from(list_alone())), min_size=2, max_size=4),
    st.sampled_from(["; ", " && ", " || ", "\n", " & "]),
)
def test_a_list_is_as_dangerous_as_its_worst_command(commands, joint):
    worst, whole = max(judged(one).level for one in commands), joint.join(commands)
    if not parse_command_line(
        whole
    ).whole:  # the grammar takes some line ends for blanks: then it asks
        worst = max(worst, DangerLevel.ASK)
    assert judged(whole).level is worst


PARTS = st.sampled_from(
    [
        *(
            "rm",
            "-rf",
            "/",
            "~",
            "*",
            "ls",
            "cat",
            "$x",
            "${x}",
            "${x:-a}",
            "$(",
            ")",
            "`",
            '"',
            "'",
        ),
        *(
            "\\",
            "\n",
            " ",
            ";",
            "|",
            "&&",
            "||",
            "&",
            "<",
            ">",
            "<<E",
            "E\n",
            "<<<",
            "{",
            "}",
            "((",
        ),
        *(
            "[[",
            "]]",
            "if",
            "then",
            "fi",
            "for",
            "in",
            "do",
            "done",
            "case",
            "esac",
            "f()",
            "#",
            "=",
            "bash -c ",
            "eval ",
            "sudo ",
            "xargs ",
            "find . -exec ",
            "git ",
            "$'\\x",
            "~+",
            "\0",
            "é",
            "!",
            "alias a=",
            "cd ",
            "kill ",
            "curl x",
            "sed ",
            "-",
            "--",
            "{a,b}",
            "a[",
            "]",
            "é",
            "\udc80",
        ),
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(PARTS, max_size=14).map("".join) | st.lists(PARTS, max_size=14).map(" ".join))
def test_nothing_breaks_the_analysis(command):
    found = judged(command)
    assert found.level in DangerLevel
    assert bool(found.reason) is (found.level > DangerLevel.SAFE)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_no_text_breaks_the_analysis(text):
    assert judged(text).level in DangerLevel


@settings(max_examples=300, deadline=None)
@given(st.lists(PARTS, max_size=8).map(" ".join))
def test_text_before_a_newline_hides_nothing_it_does_not_quote(before):
    """A command on its own line after text that parses is seen, whatever that text is."""
    view = parse_command_line(f"{before}\n")
    open_ended = not view.whole or "<<" in before or "#" in before or before.endswith("\\")
    level = judged(f"{before}\ngit reset --hard").level
    assert open_ended or level is DangerLevel.DANGEROUS
    assert level > DangerLevel.SAFE or before.endswith("\\")  # there the line goes on


@pytest.mark.parametrize("program", ["docker exec web", "podman run -it x", "docker run -v a:b x"])
@pytest.mark.parametrize(
    "address", ["http://localhost/a", "x:////", "a://", "://b", "x://..", "y:/"]
)
def test_an_address_given_to_a_container_is_judged_to_its_end(program, address):
    level = judged(f"{program} curl {address}").level
    assert level is DangerLevel.ASK
    assert judged(f"{program} rm -rf {address}").level >= DangerLevel.ASK
