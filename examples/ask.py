"""Use gong as a library: submit one prompt in a folder and watch the events.

Run it with a folder for the store: python examples/ask.py /tmp/tapes "list ."
"""

import asyncio
import os
import sys
from contextlib import aclosing
from pathlib import Path

from gong.agent import events
from gong.agent.front_end import FrontEnd
from gong.assembly.opening import open_session
from gong.config import PermissionSettings, Settings
from tape import open_store


async def ask(store_path: Path, prompt: str) -> None:
    allowed = PermissionSettings(mode="bypass")  # this model does only what it is told
    settings = Settings(model="offline/rules", permissions=allowed)
    front = FrontEnd(open_store(store_path), settings, os.environ, str(Path.cwd()), "example/1")
    host = await open_session(front)
    try:
        async with aclosing(host.session.submit(prompt)) as stream:
            async for event in stream:
                if isinstance(event, events.MessageUpdate) and event.part == "text":
                    print(event.delta, end="", flush=True)
                elif isinstance(event, events.ToolExecutionStart):
                    print(f"[{event.name} {bytes(event.args).decode()}]")
        print()
    finally:
        await host.close()


asyncio.run(ask(Path(sys.argv[1]), sys.argv[2]))
