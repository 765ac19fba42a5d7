"""What starting a command may not cost: no SDK, no screen library, no database toolkit."""

from __future__ import annotations

import os
import subprocess
import sys

import click
import pytest

from gong.cli import chat_options
from gong.cli import run as gong_group
from gong.setting_values import MAX_TIMEOUT_MS
from tape.cli import group
from tape.formats.sessions.registry import SESSION_FORMATS
from tape.index import reader
from tests.wires.raw_server import RawServer, head
from tests.wires.table import every_wire

SDKS = {"anthropic", "openai", "pydantic", "httpx2"}
HEAVY = {
    *("httpcore2", "tiktoken", "PIL", "pypdf", *SDKS),
    *("prompt_toolkit", "sqlite_utils", "tree_sitter", "tree_sitter_bash", "jsonschema"),
    *("markdown_it", "pygments", "starlette", "uvicorn", "mcp", "zstandard", "lxml"),
}
"""Packages that cost a tenth of a second or more to import: loaded when used, never before."""

GONG = "gong.cli.run"
"""The module of the group itself."""

RUN = """
import atexit, importlib, sys

modules, program, *arguments = sys.argv[1:]

@atexit.register
def dump():
    with open(modules, "w") as file:
        file.write("\\n".join(sys.modules))

sys.argv = [program, *arguments]
importlib.import_module(f"{program}.cli").main()
"""
"""Runs one of our commands and writes the names of all loaded modules to a file at its end."""


NOT_FOR_A_PROMPT = {
    *(
        "gong.policy.danger",
        "gong.shell.parser",
        "gong.repl.conversation.app",
        "gong.agent.handoff",
    ),
    *("gong.summary.rules", "gong.summary.sentences"),
}
"""Modules that a prompt without tool calls does not need: each is imported with its first use."""


@pytest.fixture
def run(tmp_path):
    """Run a command line in a home of its own and return the modules that were loaded."""
    home = tmp_path / "home"
    home.mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}

    def modules(*command: str, code: int = 0, **more: str) -> set[str]:
        listed = tmp_path / "modules"
        listed.unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, "-c", RUN, str(listed), *command],
            cwd=home,
            env={**env, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return set(listed.read_text("utf-8").split("\n"))

    return modules


@pytest.mark.parametrize(
    "command", ["tape --version", "tape --help", "gong --version", "gong --help"]
)
def test_a_command_that_only_speaks_loads_nothing_heavy(run, command):
    assert run(*command.split()) & HEAVY == set()


def test_listing_tapes_with_an_index_loads_nothing_heavy(run, tmp_path):
    run("tape", "new", "--json")
    run("tape", "ls")
    assert (tmp_path / "home/.tape/index.db").exists()
    assert run("tape", "ls") & HEAVY == set()


def test_a_plain_list_imports_neither_the_model_nor_the_store(run, tmp_path):
    run("tape", "new", "--json")
    index = tmp_path / "home/.tape"
    while (
        reader.fetch_newest_tapes(str(index), 1) is None
    ):  # it trusts no folder that changed just now
        run("tape", "ls", "--no-pager")
    loaded = run("tape", "ls")
    assert (
        loaded & {"tape.model.line", "msgspec", "tape.store.store", "pathlib", "subprocess"}
        == set()
    )
    assert "tape.index.reader" in loaded


def test_a_search_imports_neither_the_model_nor_the_store(run, tmp_path):
    run("tape", "new", "--title", "zeppelin")
    index = tmp_path / "home/.tape"
    while reader.fetch_newest_tapes(str(index), 1) is None:  # as above
        run("tape", "ls", "--no-pager")
    loaded = run("tape", "search", "zeppelin", "-n", "3", code=1)
    assert (
        loaded & {"tape.model.line", "msgspec", "tape.store.store", "tape.index.library", "pathlib"}
        == set()
    )
    assert "tape.index.search" in loaded


def test_sums_import_neither_the_model_nor_the_store(run, tmp_path):
    run("tape", "new", "--json")
    index = tmp_path / "home/.tape"
    while reader.fetch_newest_tapes(str(index), 1) is None:  # as above
        run("tape", "ls", "--no-pager")
    loaded = run("tape", "stats")
    assert (
        loaded & {"tape.model.line", "msgspec", "tape.store.store", "tape.index.library", "pathlib"}
        == set()
    )
    assert "tape.index.stats" in loaded


@pytest.mark.parametrize("command", ["show", "log", "status", "branches"])
def test_looking_at_a_tape_without_calls_reads_no_tools_and_no_history(run, command):
    run("tape", "new", "--json")
    run("tape", "ls")  # the index reads it
    assert not {
        *("difflib", "tape.files.calls", "tape.files.git_patch", "tape.render.commonmark"),
        *("tape.history.follow", "tape.history.graph", "tape.history.merge_base"),
    } & run("tape", command)


@pytest.mark.parametrize("command", ["show", "log", "status", "branches"])
def test_looking_at_a_tape_imports_nothing_that_only_writing_needs(run, tmp_path, command):
    """Nor a module of Python that it can do without: each is a tenth of an empty Python or more."""
    run("tape", "new", "--json")
    index = tmp_path / "home/.tape"
    while reader.fetch_newest_tapes(str(index), 1) is None:  # as above
        run("tape", "ls", "--no-pager")
    loaded = run("tape", command)
    assert "tape.store.tape" in loaded
    assert not loaded & {
        *("pathlib", "dataclasses", "shlex", "urllib.parse"),
        *("tape.store.writer", "tape.store.redaction", "tape.store.replica"),
        *("tape.index.tape_record", "tape.index.tape_sync", "tape.index.ingest"),
        *("tape.index.catch_up", "tape.index.tables", "tape.index.writer_log"),
        *("tape.places.moved", "tape.formats.sessions.registry"),
    }


@pytest.mark.parametrize("command", ["show", "status", "branches"])
def test_what_a_tape_is_needs_no_text_of_entries(run, command):
    run("tape", "new", "--json")
    run("tape", "ls")  # the index reads it
    loaded = run("tape", command)
    assert loaded & {"tape.render.entries", "tape.cli.log", "tape.cli.entry_view"} == set()


def test_the_help_page_of_a_conversation_needs_no_event_loop(run):
    assert not {"asyncio", "tempfile", "msgspec", "gong.config"} & run("gong", "chat", "--help")


def test_the_version_needs_nothing_at_all(run):
    assert {name for name in run("tape", "--version") if name.startswith("tape")} == {
        "tape",
        "tape.cli",
        "tape.version",
    }


def test_the_help_page_of_a_program_imports_none_of_its_commands(run):
    commands = {f"tape.cli.{module}" for module, _ in group.COMMANDS.values()}
    commands |= {f"gong.cli.{module}" for module, _ in gong_group.COMMANDS.values()} - {GONG}
    heavy = {"msgspec", "sqlite3", "tape.store.store", "pathlib", "json"}
    for program in ("tape", "gong"):
        loaded = run(program, "--help")
        assert "click" in loaded
        assert loaded & (commands | heavy) == set()


@pytest.mark.parametrize(
    ("commands", "table"),
    [(group.tape, group.COMMANDS), (gong_group.gong, gong_group.COMMANDS)],
    ids=["tape", "gong"],
)
def test_the_table_of_commands_names_commands_that_exist(commands, table):
    ctx = click.Context(commands)
    for name in table:
        command = commands.get_command(ctx, name)
        assert isinstance(command, click.Command), name
        assert command.name == name
    assert commands.get_command(ctx, "none") is None


def test_a_help_page_is_printed_in_the_encoding_of_the_screen(run):
    run("gong", "chat", "-h", PYTHONIOENCODING="ascii")


def test_looking_at_a_tape_loads_nothing_it_does_not_need(run):
    run("tape", "new", "--json")
    run("tape", "ls")
    assert run("tape", "show") & {"subprocess", "shutil", "traceback", *HEAVY} == set()


def test_a_reference_to_a_session_loads_no_reader_of_sessions(run, tmp_path):
    lines = '{"role":"user","content":"hi"}'
    chat = tmp_path / "home/.kimi/sessions/0/a/context.jsonl"
    chat.parent.mkdir(parents=True)
    chat.write_text(lines)
    run("tape", "import", "auto")
    run("tape", "ls")
    loaded = run("tape", "show", "kimi:a")
    assert "tape.formats.sessions.registry" in loaded
    readers = {f"tape.formats.sessions.{row.reader}" for row in SESSION_FORMATS.values()}
    assert loaded & readers == set()


def test_answering_a_prompt_loads_no_policy_and_no_summaries(run, tmp_path):
    """`run` sees this at all because functions registered for the end still run."""
    script = tmp_path / "script.json"
    script.write_text('[{"text": "Hello."}]')
    loaded = run("gong", "-p", "hi", "-m", f"scripted/{script}")
    assert "gong.agent.loop" in loaded
    assert loaded & (HEAVY - {"sqlite_utils"} | NOT_FOR_A_PROMPT) == set()


def test_completing_a_verb_imports_none(run):
    env = {"TAPE_LINE": "tape re", "_TAPE_COMPLETE": "bash_complete"}
    loaded = run("tape", **env)
    assert loaded & {"tape.cli.branching", "tape.cli.maintain", "tape.store.store", *HEAVY} == set()


@every_wire
def test_a_model_is_called_without_an_sdk(run, wire):
    variable = f"{wire.preset.upper().replace('-', '_')}_BASE_URL"
    with RawServer(lambda: [head(), wire.said("Hi.")]) as server:
        loaded = run("gong", "-m", f"{wire.preset}/x", "-p", "hi", **{variable: server.url})
        assert len(server.requests) == 1
    assert loaded & SDKS == set()
    assert "httpcore2" in loaded


def test_the_measure_sees_a_heavy_package(tmp_path, run):
    """A made-up command that imports sqlite_utils is caught."""
    package = tmp_path / "home" / "greedy"
    package.mkdir()
    (package / "cli.py").write_text("import sqlite_utils\ndef main(): pass\n")
    assert "sqlite_utils" in run("greedy")


def test_a_run_without_servers_loads_nothing_of_them(run):
    loaded = run("gong", "chat", "-p", "list .", "-m", "offline/rules")
    assert [name for name in loaded if name.split(".")[0] in {"mcp", "mcp_types"}] == []
    assert [name for name in loaded if name.startswith("gong.mcp")] == []


def test_listing_servers_loads_no_sdk(run):
    run("gong", "mcp", "add", "a", "--", "true")
    assert {"mcp", "pydantic"} & run("gong", "mcp", "list") == set()


def test_a_run_without_hooks_loads_nothing_of_them(run):
    loaded = run("gong", "chat", "-p", "list .", "-m", "offline/rules")
    unused = ("gong.hooks", "gong.trust", "gong.agent.hook_points", "gong.skills", "gong.plugins")
    assert "gong.agent.session" in loaded
    assert [name for name in loaded if name.startswith(unused)] == []


def test_a_run_without_sub_agents_loads_nothing_of_them(run):
    loaded = run("gong", "chat", "-p", "list .", "-m", "offline/rules", "--tools", "anthropic")
    unused = ("gong.subagents", "gong.front_matter", "gong.context.agent_calls", "yaml")
    assert "gong.agent.session" in loaded
    assert [name for name in loaded if name.startswith(unused)] == []


def test_skills_are_read_only_where_there_are_some_or_one_is_named(run, tmp_path):
    """Those that come with gong cost a start nothing; yaml is read with the first front matter."""
    script = tmp_path / "script.json"
    script.write_text('[{"text": "Hello."}]')
    prompt = ("gong", "-m", f"scripted/{script}", "-p")
    assert {"gong.skills", "yaml"} & run(*prompt, "hi") == set()
    assert {"gong.skills.session_skills", "yaml"} <= run(*prompt, "/commit")
    skill = tmp_path / "home/.claude/skills/own/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("Do it.")
    assert "gong.skills.listing" in run(*prompt, "hi")


def test_the_first_prompt_is_painted_before_settings_and_tools_are_imported():
    first = "gong.repl.conversation.first_prompt"
    code = f"import sys, gong.cli.run, gong.cli.chat, {first}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    slow = {"msgspec", "gong.config", "gong.context.system", "tape.model.entries", "difflib"}
    assert slow & {*loaded} == set()


def test_the_longest_time_of_a_command_is_the_one_of_its_tool():
    assert chat_options.MAX_COMMAND_SECONDS == MAX_TIMEOUT_MS / 1000
