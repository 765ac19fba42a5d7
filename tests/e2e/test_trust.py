"""The question about a project, in a real terminal."""

import json
import sys
from pathlib import Path

from tests.e2e.terminal import CTRL_D, ENTER, ESC, UP, Terminal

GONG = str(Path(sys.executable).parent / "gong")
HOOKS = {"Stop": [{"hooks": [{"type": "command", "command": "touch hooked"}]}]}


def test_a_project_is_asked_about_once_in_a_terminal(place):
    """A no is kept, a change asks again, and a yes lets hooks run."""
    work = place.folder
    (work / ".gong").mkdir()
    hooks = work / ".gong/hooks.json"
    hooks.write_text(json.dumps(HOOKS))
    model = place.script({"text": "done"})

    def chat(*answers):
        with Terminal([GONG, "chat", "-m", model], cwd=work, env=place.env) as terminal:
            for answer in answers:
                terminal.wait_for("Trust this project?")
                assert "runs at Stop: touch hooked" in terminal.text()
                assert "␛" not in terminal.text()
                terminal.wait_for_keys()
                terminal.type(answer)
            terminal.wait_for("/help")
            terminal.say("go")
            terminal.wait_for("done")
            terminal.wait_for("ready")
            assert terminal.wait_for_end(CTRL_D) == 0
        return (work / "hooked").exists()

    assert not chat(ESC)  # asked again
    assert not chat("n")
    assert not chat()
    hooks.write_text(json.dumps({**HOOKS, "SessionEnd": []}))
    assert chat(UP + UP + ENTER)
    (work / "hooked").unlink()
    assert chat()


def test_a_run_without_a_person_continues_without_untrusted_parts(place):
    """It says so on standard error, and runs the hooks once they are trusted."""
    (place.folder / ".gong").mkdir()
    (place.folder / ".gong/hooks.json").write_text(json.dumps(HOOKS))
    (place.folder / ".gong/config.toml").write_text('[permissions]\nmode = "bypass"\n')
    calls = {"tool_calls": [{"name": "bash", "args": {"command": "touch ran"}}]}
    model = place.script(calls, {"text": "done"})
    untrusted = place.run("gong", "-p", "go", "-m", model, code=7, GONG_PERMISSION="default")
    assert "gong trust" in untrusted.stderr
    assert not (place.folder / "hooked").exists()
    place.run("gong", "trust", "--yes")
    trusted = place.run("gong", "-p", "go", "-m", model, GONG_PERMISSION="bypass")
    assert "trust" not in trusted.stderr
    assert (place.folder / "hooked").exists()
    assert (place.folder / "ran").exists()
