"""A task of inspect_ai that gong works on; inspect's bridge answers for the model.

    inspect eval hello.py --model openai/gpt-5
    inspect eval hello.py --model openai/gpt-5 -T where=local

The first works in a container, which needs gong on its PATH; the second in a folder of this
machine. Any model of inspect takes part: what gong sends goes through the bridge, and the log of
inspect has every call.
"""

from inspect_ai import Task, task
from inspect_ai.agent import Agent, AgentState, agent, sandbox_agent_bridge
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, Target, accuracy, scorer
from inspect_ai.util import sandbox


@agent
def coder() -> Agent:
    async def execute(state: AgentState) -> AgentState:
        async with sandbox_agent_bridge(state, port=13131) as bridge:
            address = f"http://localhost:{bridge.port}"
            done = await sandbox().exec(
                ["gong", "-p", state.messages[-1].text, "-m", "anthropic/inspect", "--yolo"],
                env={"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "none"},
            )
            if not done.success:
                raise RuntimeError(done.stderr)
            return bridge.state

    return execute


@scorer(metrics=[accuracy()])
def says_hello():
    async def score(_state, target: Target) -> Score:
        text = await sandbox().read_file("hello.txt")
        return Score(value="C" if text.strip() == target.text else "I")

    return score


@task
def hello(where: str = "docker") -> Task:
    sample = Sample(input="Write hello into hello.txt.", target="hello")
    return Task([sample], solver=coder(), scorer=says_hello(), sandbox=where)
