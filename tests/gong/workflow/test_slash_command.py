"""/workflow in a session on the same store."""

from __future__ import annotations

from gong.agent.opening import FrontEnd, open_session
from gong.config import Settings
from gong.repl import app  # noqa: F401 (it adds the commands)
from gong.repl.commands import answer_command
from tape.index.library import open_store


async def test_workflows_are_listed_and_shown(place):
    place.start(place.write_plan("a", ("b", "a")))
    shown, _ = place.show()
    with open_store(place.home / ".tape") as library:
        front = FrontEnd(
            library, Settings(model="offline/rules"), place.env, str(place.repo), "test/1"
        )
        host = await open_session(front)
        try:
            listed = answer_command("/workflow", host, busy=False)
            graph = answer_command(f"/workflow {shown['id'][:8]}", host, busy=True)
            unknown = answer_command("/workflow zz", host, busy=False)
        finally:
            await host.close()
    assert listed.text == f"{shown['id'][:8]}  completed 2/2  make files"
    assert "make a" in graph.text
    assert unknown.failed
