import re
from pathlib import Path

from msgspec import Struct

from gong.tools.tool import AgentTool, ToolOutcome
from tape.model.entries import join_texts
from tests.gong.agent.conftest import call, seen


class Nothing(Struct):
    pass


def written(path):
    return path.read_text("utf-8")


async def long(arguments, context):
    return ToolOutcome.from_text("".join(f"row {n}\n" for n in range(20_000)))


async def test_the_whole_of_a_long_result_stays_on_the_session_s_tape(stage):
    """M117 M119 C40: under the path that the model is told, from the command and any other tool."""
    calls = [call("bash", command="seq 1 30000"), call("mcp__rows")]
    host = await stage.host({"tool_calls": calls}, {"text": "ok"})
    tools = host.session.setup.tools
    tools.register(AgentTool("mcp__rows", "", Nothing, long))
    tools.set_active(tools.names)
    await seen(host.session, "go")
    results = [entry.data for entry in host.session.recorder.path if entry.type == "tool.result"]
    assert len(results) == 2
    for result in results:
        kept = Path(re.search(r"(?:output|saved to): ([^\]\n]+)", join_texts(result.content))[1])
        assert kept.parent.parent.name == "blobs"
        assert result.full.hash == kept.name
        assert host.session.recorder.tape.blobs.text(result.full) == written(kept)
    assert b'"truncation_removed_bytes":' in bytes(results[1].details)
