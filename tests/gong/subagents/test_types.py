"""Types of sub-agents: those built in, and those of files."""

from __future__ import annotations

import pytest

from gong.errors import ConfigurationError
from gong.policy.modes import PermissionMode
from gong.subagents.child import is_named
from gong.subagents.types import load_agent_types, load_built_in_types, parse_agent_file
from gong.trust import read_project, trust_project
from tests.gong.agent.conftest import call, seen
from tests.gong.subagents.conftest import results

DONE = {"text": "done"}
WIDER = "bypassPermissions could allow more than the session does; its mode holds"


def parse(text):
    return parse_agent_file(text, "x.md", "user")


def test_the_types_that_come_with_it():
    """M193: general-purpose, Explore, Plan, code-review, plugin-dev, code-simplifier."""
    assert [one.name for one in load_built_in_types()] == [
        *("general-purpose", "Explore", "Plan", "code-review", "code-simplifier", "plugin-dev"),
        *("planner", "executor", "reviewer", "fixer", "evaluator", "test-writer"),
    ]


def test_every_field_that_counts():
    kind, remarks = parse(
        "---\nname: reviewer\ndescription: reviews\ntools: Read, Bash(git *)\n"
        "disallowedTools: [Grep]\nmodel: haiku\npermissionMode: plan\nmaxTurns: 7\n"
        "skills: a, b\nbackground: yes\nisolation: worktree\neffort: high\n"
        "initialPrompt: Begin.\ncolor: red\nomitClaudeMd: true\n---\nYou review.\n"
    )
    assert remarks == ()
    assert kind._asdict() == {
        "name": "reviewer",
        "description": "reviews",
        "prompt": "You review.",
        "source": "user",
        "path": "x.md",
        "tools": ("Read", "Bash(git *)"),
        "disallowed": ("Grep",),
        "model": "haiku",
        "mode": PermissionMode.PLAN,
        "max_turns": 7,
        "effort": "high",
        "skills": ("a", "b"),
        "background": True,
        "worktree": True,
        "initial_prompt": "Begin.",
        "color": "red",
        "reads_instructions": False,
        "plugin": "",
    }


def test_a_file_whose_front_matter_is_not_yaml_is_a_type_all_the_same():
    kind, remarks = parse(
        "---\nname: reader\ndescription: Use for research: only reads\n"
        "tools: Read, Grep\n---\nRead."
    )
    assert (kind.name, kind.description) == ("reader", "Use for research: only reads")
    assert kind.tools == ("Read", "Grep")
    assert remarks[0].endswith("read as text: description")


@pytest.mark.parametrize(
    ("field", "remark"),
    [
        ("sparkle: 1", "unknown field sparkle"),
        ("hooks: {}", "hooks has no effect here"),
        ("maxTurns: many", "maxTurns is left out: give a number, 0 for no limit"),
        ("permissionMode: bypassPermissions", f"permissionMode is left out: {WIDER}"),
        ("permissionMode: 3", "permissionMode is left out: give a text"),
        ("isolation: vm", "isolation is left out: the only one is worktree"),
        ("effort: huge", "effort is left out: give one of low, medium, high, xhigh"),
        ("background: perhaps", "background is left out: give true or false"),
        ("tools: 3", "tools is left out: give names, as a list or with commas"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_left_out_with_a_remark(field, remark):
    kind, remarks = parse(f"---\nname: a\ndescription: b\n{field}\n---\nx")
    plain, _ = parse("---\nname: a\ndescription: b\n---\nx")
    assert (kind, remarks) == (plain, (remark,))


@pytest.mark.parametrize("text", ["", "x", "---\nname: a\n---\nx", "---\ndescription: a\n---\n"])
def test_a_file_that_names_no_type_is_left_out(text):
    kind, remarks = parse(text)
    assert kind is None
    assert "so it is not used" in remarks[-1]


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        *(("bash", "Bash"), ("shell", "Bash(git *)"), ("read_file", "Read"), ("read", "read_file")),
        *(("find", "Glob"), ("apply_patch", "Edit"), ("Task", "Agent(Explore)")),
        *(("spawn_agent", "Task"), ("github__issue", "mcp__github"), ("a__b", "mcp__a__b")),
    ],
)
def test_names_of_tools_in_files_of_any_agent(tool, name):
    assert is_named((tool,), name)
    assert not is_named(("other",), name)


class Home:
    """A home and a project with files of agents."""

    def __init__(self, tmp_path):
        self.home, self.project = tmp_path / "home", tmp_path / "home/work"
        self.environ = {"HOME": str(self.home)}
        (self.project / ".git").mkdir(parents=True)

    def write(self, path, name, about="b", **fields):
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        rows = "".join(f"{key}: {value}\n" for key, value in fields.items())
        file.write_text(f"---\nname: {name}\ndescription: {about}\n{rows}---\nYou are {name}.\n")

    def trust(self):
        trust_project(read_project(str(self.project), self.environ), self.environ)

    def load(self):
        return load_agent_types(str(self.project), self.environ)


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


def test_files_of_the_user_and_of_a_project_that_is_trusted(home):
    home.write(".claude/agents/deep/mine.md", "mine")
    home.write(".config/gong/agents/own.md", "own")
    home.write("work/.claude/agents/theirs.md", "theirs")
    home.write("work/.gong/agents/here.md", "here")
    own = {name: one.source for name, one in home.load().types.items() if one.path.endswith("md")}
    assert {name for name, source in own.items() if source != "built-in"} == {"mine", "own"}
    home.trust()
    found = home.load()
    assert [one.name for one in found.types.values()][-4:] == ["mine", "own", "theirs", "here"]
    assert found.find("HERE").source == "project"
    assert found.warnings == ()
    home.write("work/.gong/agents/here.md", "changed")
    assert "changed" not in home.load().types


def test_the_later_file_of_a_name_counts(home):
    home.write(".claude/agents/a.md", "explore", "mine")
    home.write(".config/gong/agents/a.md", "Explore", "nearer")
    [found] = [one for one in home.load().types.values() if one.name.lower() == "explore"]
    assert found.description == "nearer"


def test_what_is_wrong_with_a_file_names_it(home):
    home.write(".claude/agents/a.md", "a", sparkle=1)
    assert home.load().warnings == (f"{home.home}/.claude/agents/a.md: unknown field sparkle",)
    with pytest.raises(ConfigurationError, match="no type of sub-agent 'b': there are general"):
        home.load().find("b")


def test_models_get_the_descriptions_of_agent_files(home):
    home.write(".claude/agents/a.md", "docs-writer", "writes pages")
    assert home.load().describe().endswith("test-writer, docs-writer (writes pages)")


def write_type(stage, name, fields=""):
    folder = stage.folder.parent / ".claude/agents"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(
        f"---\nname: {name}\ndescription: does it\n{fields}---\nYou are the {name}.\n"
    )


async def test_a_type_of_a_file_is_offered_and_used(stage):
    model = stage.script({"tool_calls": [call("ls")]}, {"text": "seen"})
    fields = f"model: {model}\ntools: LS, Telepathy\ninitialPrompt: Look well.\n"
    write_type(stage, "looker", fields)
    session = await stage.session(
        {"tool_calls": [call("Task", prompt="look", subagent_type="looker")]},
        DONE,
        tools=("anthropic",),
    )
    [spec] = [one for one in session.setup.tools.specs() if one.name == "Task"]
    assert "looker (does it)" in spec.description
    said = [one.message for one in await seen(session, "go") if one.kind == "warning"]
    assert said == ["agent-1 (looker): Telepathy is not available here"]
    assert results(session) == ["seen"]
    tape = session.recorder.tape
    prompts = [one.data for one in tape.entries(tape.head("agent-1")) if one.type == "user"]
    assert prompts[0].content[0].text == "Look well.\n\nlook"
    [child] = session.subagents.values()
    system = child.plan.model.build_system(())
    assert system.startswith("You are the looker.")
    assert "You are a sub-agent" in system
    assert "Working directory" in system


async def test_a_model_of_a_type_that_cannot_be_called_is_its_parents(stage):
    write_type(stage, "dear", "model: opus\n")
    session = await stage.run(call("Task", prompt="x", subagent_type="dear", description="y"))
    [child] = session.subagents.values()
    assert child.plan.model.name == session.setup.model.name
    assert "dear works with scripted/" in child.plan.remarks[0]


async def test_a_type_that_always_runs_in_the_background(stage):
    write_type(stage, "slow", "background: true\n")
    session = await stage.run(stage.task({"text": "late"}, subagent_type="slow"))
    [started] = results(session)
    assert started == "Started in the background as agent-1. You get a message when it ends."
