"""Record any agent on a tape: a prompt, an answer with a tool call, the result, the final answer.

Run it with a folder for the store: python examples/record_your_agent.py /tmp/tapes
"""

import sys
from pathlib import Path

from msgspec import Raw

from tape import Assistant, Beginning, Text, ToolCall, ToolResult, ToolStart, User, open_store

store, _ = open_store(Path(sys.argv[1]))
beginning = Beginning(cwd=str(Path.cwd()), program="example/1", slug="how long is it")

with store.create(beginning) as tape, tape.writer() as writer:
    writer.append(User((Text("How many lines has README.md?"),)))
    writer.barrier()  # on disk before the model is called

    call = ToolCall("c_00000001_0", "count_lines", Raw(b'{"path":"README.md"}'))
    writer.append(Assistant((call,), provider="mine", model="m1", stop_reason="tool_calls"))
    writer.barrier()  # before a tool runs

    writer.append(ToolStart(call.id, call.name, replay="safe"))
    writer.append(ToolResult(call.id, call.name, (Text("42"),)))
    writer.append(Assistant((Text("It has 42 lines."),), provider="mine", model="m1"))

    print(f"recorded {tape.id[:8]}: try  tape --store {store.path} cat {tape.id[:8]}")
