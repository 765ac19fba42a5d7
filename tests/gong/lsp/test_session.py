"""Language servers in a session: the tool lsp, and what is said after a call changed a file."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

import pytest

from gong.config import LanguageServerSettings, LspSettings, PermissionSettings
from gong.errors import ConfigurationError
from gong.lsp import connection, session_languages
from gong.lsp.servers import find_servers
from tape.model.entries import ToolResult, join_texts
from tests.gong.agent.conftest import Stage, call, seen

SERVER = str(Path(__file__).parent / "server.py")
DONE = {"text": "done"}
CODE = "import os\n\ndef run(x):\n    return x\n\nrun(1)\n"


@pytest.fixture
async def stage(tmp_path):
    made = Stage(tmp_path)
    (made.folder / "a.py").write_text(CODE)
    yield made
    for host in made.hosts:
        await host.close()


def using(*words, **more):
    table = LanguageServerSettings((sys.executable, SERVER, *words), {"*.py": "python"}, **more)
    return LspSettings(servers={"played": table})


def calling(*calls):
    return {"tool_calls": [*calls]}


def results(session):
    path = (entry.data for entry in session.recorder.path)
    return [join_texts(data.content) for data in path if isinstance(data, ToolResult)]


async def run(stage, *calls, words=(), **settings):
    answers = (calling(each) for each in calls)
    session = await stage.session(*answers, DONE, lsp=using(*words), **settings)
    events = await seen(session, "go")
    return results(session), [event.message for event in events if event.kind == "warning"]


@pytest.mark.parametrize("words", [(), ("utf8",)])
async def test_the_tool_answers_about_a_name(stage, words):
    """M196"""
    (stage.folder / "a.py").write_text('T = "𝄞ü"; ' + CODE)
    found, warnings = await run(
        stage,
        call("lsp", operation="definition", path="a.py", symbol="run", line=6),
        call("lsp", operation="references", path="a.py", symbol="run"),
        call("lsp", operation="hover", path="a.py", symbol="run"),
        call("lsp", operation="outline", path="a.py"),
        call("lsp", operation="symbols", path="a.py", symbol="run"),
        call("lsp", operation="diagnostics", path="a.py"),
        words=words,
    )
    assert found == [
        "a.py:3:5: def run(x):",
        "a.py:3:5: def run(x):\na.py:6:1: run(1)",
        "about run",
        "     3  function run",
        "a.py:3: function run",
        "No diagnostics.",
    ]
    assert warnings == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"operation": "definition", "path": "a.py"}, "needs a symbol"),
        ({"operation": "hover", "path": "a.py", "symbol": "nothing"}, "does not stand in the file"),
        ({"operation": "hover", "path": "a.py", "symbol": "run", "line": 1}, "in line 1"),
        ({"operation": "outline", "path": "gone.py"}, "File not found: gone.py"),
        ({"operation": "outline", "path": "a.txt"}, r"No language server takes a.txt"),
        ({"operation": "rename", "path": "a.py"}, "Invalid arguments"),
    ],
)
async def test_the_tool_refuses_what_it_cannot_ask(stage, arguments, words):
    [text], _ = await run(stage, call("lsp", **arguments))
    assert words in text


@pytest.mark.parametrize("words", [(), ("pull",), ("utf8",)])
async def test_an_edit_tells_what_is_newly_wrong(stage, words):
    """The fault that was there before is not told again, though its line is another one now."""
    (stage.folder / "a.py").write_text(f"{CODE}x = 1  # WRONG before\n")
    found, _ = await run(
        stage,
        call("read", path="a.py"),
        call("edit", path="a.py", oldText="import os\n", newText="import os\n# ü WRONG now\n"),
        call("edit", path="a.py", oldText="# ü WRONG now\n", newText="# fine\n"),
        call("write", path="b.py", content="WRONG too\n"),
        call("bash", command="true"),
        words=words,
    )
    told = "\n\nNew diagnostics in a.py (played):\na.py:2:5: error: what is now? [w]"
    assert found[1].endswith(told)
    assert "diagnostics" not in found[2]
    assert found[3].endswith("\n\nErrors in b.py (played):\nb.py:1:1: error: what is too? [w]")
    assert "rror" not in found[4]


async def test_values_that_the_protocol_does_not_have_stop_nothing(stage):
    """A place in a pipe, or in a file that is no code, is named, and nothing read there."""
    (stage.folder / ".env").write_text("PASSWORD=hidden\n")
    os.mkfifo(stage.folder / "fifo.py")
    found, warnings = await run(
        stage,
        call("lsp", operation="hover", path="a.py", symbol="run"),
        call("lsp", operation="definition", path="a.py", symbol="run"),
        call("lsp", operation="outline", path="a.py"),
        call("lsp", operation="outline", path="fifo.py"),
        words=("odd",),
    )
    assert found[:3] == ["a number", ".env:1:1\nfifo.py:1:1", "     3  function run"]
    assert found[3].endswith("fifo.py is not a regular file")
    assert warnings == []


async def test_lines_of_files_that_a_rule_denies_to_read_are_not_shown(stage):
    (stage.folder / "hidden.py").write_text("run = 'hunter2'\n")
    found, _ = await run(
        stage,
        call("lsp", operation="outline", path="hidden.py"),
        call("lsp", operation="references", path="a.py", symbol="run"),
        permissions=PermissionSettings(mode="bypass", deny=("Read(hidden.py)",)),
    )
    assert "hidden.py:1:1" in found[1].split("\n")
    assert "hunter2" not in found[1]


async def test_a_server_that_stops_reading_is_given_up(stage, monkeypatch):
    monkeypatch.setattr(connection, "_SEND_SECONDS", 0.1)
    (stage.folder / "a.py").write_text(CODE * 20_000)
    ask = call("lsp", operation="diagnostics", path="a.py")
    found, _ = await run(stage, ask, ask, words=("stuck",))
    assert found == ["played: it read nothing for 0.1 s"] * 2


async def test_a_server_that_never_answers_keeps_no_call_for_ever(stage, monkeypatch):
    monkeypatch.setattr(session_languages, "_ANSWER_SECONDS", 0.2)
    ask = call("lsp", operation="hover", path="a.py", symbol="run")
    found, warnings = await run(stage, ask, ask, words=("deaf",))
    late = "played did not answer within 0.2 s: it may still be reading"
    assert found == [late] * 2
    assert warnings == []


async def test_a_server_that_is_never_ready_is_given_up(stage, monkeypatch):
    monkeypatch.setattr(connection, "_START_SECONDS", 0.5)
    ask = call("lsp", operation="hover", path="a.py", symbol="run")
    write = call("write", path="b.py", content="WRONG\n")
    found, warnings = await run(stage, ask, write, ask, words=("mute",))
    reason = "played: it was not ready after 0.5 s"
    assert found == [reason, "Successfully wrote 6 bytes to b.py", reason]
    assert warnings == [f"language server {reason}"]


async def test_faults_of_other_files_and_older_texts_stay_away(stage):
    found, warnings = await run(
        stage,
        call("lsp", operation="diagnostics", path="a.py"),
        call("read", path="a.py"),
        call("edit", path="a.py", oldText="import os\n", newText="WRONG now\n"),
        call("edit", path="a.py", oldText="WRONG now\n", newText="import os\n"),
        words=("others",),
    )
    assert found[0] == "No diagnostics."
    assert found[2].endswith(
        "\n\nNew diagnostics in a.py (played):\na.py:1:1: error: what is now? [w]"
    )
    assert "elsewhere" not in "".join(found)
    assert warnings == []


async def test_a_later_call_brings_diagnostics_that_come_late(stage):
    found, _ = await run(
        stage,
        call("read", path="a.py"),
        call("edit", path="a.py", oldText="import os\n", newText="WRONG now\n"),
        call("bash", command="touch go; sleep 1"),
        call("bash", command="true"),
        words=("late",),
    )
    assert "diagnostics" not in found[1]
    assert sum("New diagnostics in a.py" in text for text in found[2:]) == 1


async def test_a_server_that_says_nothing_keeps_no_call_waiting(stage):
    found, warnings = await run(
        stage,
        call("write", path="b.py", content="WRONG\n"),
        words=("silent",),
    )
    assert found == ["Successfully wrote 6 bytes to b.py"]
    assert warnings == []


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("dies",), "it ended with exit code 3"),
        (("noise",), "it writes something else than messages"),
        (("flood",), "it writes something else than messages"),
    ],
)
async def test_a_server_that_fails_is_named_once_and_the_session_continues(stage, words, reason):
    found, warnings = await run(
        stage,
        call("lsp", operation="definition", path="a.py", symbol="run"),
        call("write", path="b.py", content="WRONG\n"),
        call("lsp", operation="diagnostics", path="a.py"),
        words=words,
    )
    assert reason in found[0]
    assert found[1] == "Successfully wrote 6 bytes to b.py"
    assert reason in found[2]
    assert [text for text in warnings if "played" in text] == [f"language server played: {reason}"]


async def test_a_program_that_is_missing_is_named(stage):
    table = LanguageServerSettings(("/nothing/there",), {"*.py": "python"})
    ask = calling(call("lsp", operation="diagnostics", path="a.py"))
    session = await stage.session(ask, DONE, lsp=LspSettings(servers={"mine": table}))
    await seen(session, "go")
    [text] = results(session)
    assert text.startswith("mine: it cannot be started: ")


async def test_questions_of_a_server_are_answered(stage):
    lsp = using("asks", settings={"a": {"b": 7}})
    ask = calling(call("lsp", operation="outline", path="a.py"))
    session = await stage.session(ask, DONE, lsp=lsp)
    await seen(session, "go")
    file, deadline = stage.folder / "answers", time.monotonic() + 30
    while not file.exists() or file.read_text().count("\n") < 2:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    answers = [json.loads(line) for line in file.read_text().splitlines()]
    assert answers[0] == {"id": "q1", "result": [7, None, {"a": {"b": 7}}]}
    assert answers[1]["result"]["applied"] is False


async def test_a_server_ends_with_its_session(stage):
    host = await stage.host(
        calling(call("lsp", operation="outline", path="a.py")), DONE, lsp=using()
    )
    await seen(host.session, "go")
    [server] = [
        server for source in host.session.setup.sources for server in source._servers.values()
    ]
    pid = server._process.pid
    await host.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("discover", [True, None])
async def test_a_known_server_is_used_where_the_settings_say_so(stage, tmp_path, discover):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/gopls").touch(mode=0o755)
    stage.environ["PATH"] = f"{tmp_path}/bin:{stage.environ['PATH']}"
    session = await stage.session(DONE, lsp=LspSettings(discover=discover))
    await seen(session, "go")
    assert (session.setup.tools.get("lsp") is not None) == bool(discover)


async def test_files_that_no_server_takes_have_an_outline_by_their_grammar(stage):
    """M196"""
    (stage.folder / "shop.go").write_text("package p\n\nfunc Sell() {}\n")
    found, warnings = await run(
        stage,
        call("lsp", operation="outline", path="shop.go"),
        call("lsp", operation="hover", path="shop.go", symbol="Sell"),
        call("lsp", operation="outline", path="gone.go"),
    )
    assert found == [
        "     3  function Sell",
        "No language server takes shop.go. There are: played (*.py).",
        "File not found: gone.go",
    ]
    assert warnings == []


async def test_an_outline_does_not_need_a_server_that_failed(stage):
    [outline], warnings = await run(
        stage, call("lsp", operation="outline", path="a.py"), words=("dies",)
    )
    reason = "played: it ended with exit code 3"
    assert outline == f"     3  function run\n\n(by its grammar: {reason})"
    assert warnings == [f"language server {reason}"]


@pytest.mark.parametrize("more", [{"tools": ("lsp",)}, {"lsp": LspSettings(discover=True)}])
async def test_the_tool_has_outlines_alone_where_it_was_asked_for_and_no_server_is_there(
    stage, tmp_path, more
):
    stage.environ["PATH"] = str(tmp_path)
    ask = [call("lsp", path="a.py"), call("lsp", operation="hover", path="a.py", symbol="run")]
    session = await stage.session(*map(calling, ask), DONE, **more)
    await seen(session, "go")
    [outline, refused] = results(session)
    assert outline == "     3  function run"
    assert refused.startswith("Invalid arguments")


async def test_without_servers_there_is_no_tool(stage):
    session = await stage.session(DONE)
    await seen(session, "go")
    assert session.setup.tools.get("lsp") is None


class TestWhichServersThereAre:
    def test_known_ones_are_found_where_the_settings_or_a_sandbox_allow_it(self, tmp_path):
        for name in ("gopls", "clangd", "pyright-langserver", "tsc", "tsgo"):
            (tmp_path / name).touch(mode=0o755)
        environ = {"PATH": str(tmp_path)}
        names = ["pyright", "tsgo", "tsc", "gopls", "clangd"]
        assert [each.name for each in find_servers(LspSettings(), environ, discovers=True)] == names
        assert find_servers(LspSettings(), environ) == ()
        assert find_servers(LspSettings(enabled=False), environ, discovers=True) == ()

    def test_a_table_comes_first_and_may_name_a_known_server(self, tmp_path):
        tables = {
            "mine": LanguageServerSettings(("mine",), {"*.x": "x"}),
            "gopls": LanguageServerSettings(),
            "clangd": LanguageServerSettings(enabled=False),
        }
        found = find_servers(LspSettings(servers=tables), {"PATH": str(tmp_path)})
        assert [each.name for each in found] == ["mine", "gopls"]
        assert found[1].command == ("gopls",)

    def test_a_table_without_a_command_is_named(self):
        tables = {"mine": LanguageServerSettings(files={"*.x": "x"})}
        with pytest.raises(ConfigurationError, match=r"lsp\.servers\.mine: give its command"):
            find_servers(LspSettings(servers=tables), {})
