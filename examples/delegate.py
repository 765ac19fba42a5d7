"""Let sub-agents explore two folders side by side, and another one change a single module.

Run it with a folder for the store: python examples/delegate.py /tmp/tapes
"""

import asyncio
import sys
from pathlib import Path

import gong
from gong.tools.agent_runs import AgentOrder

MODEL = "offline/rules"  # without network or key; it does only what it is told


async def delegate(store: str) -> None:
    async with gong.open_session(".", model=MODEL, store=store) as session:
        session.use_permission("bypass")
        await gong.answer_prompt(session, "list .")
        agents = session.find_agents()

        looks = [AgentOrder(f"list {one}", type="Explore", model=MODEL) for one in ("api", "web")]
        for report in await asyncio.gather(*map(agents.run, looks)):
            print(report.output)

        change = AgentOrder("replace NAME with TITLE in web.py", model=MODEL, folder="web")
        report = await agents.run(change)
        print(report.output, "·", report.success)


FILES = [Path("api/api.py"), Path("web/web.py")]
for file in FILES:
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"NAME = '{file.stem}'\n")
asyncio.run(delegate(sys.argv[1]))
print(*(file.read_text() for file in FILES), sep="", end="")
