"""`gong rpc` in a process of its own: every method, questions, errors, the end of the input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import jsonschema
import pytest

from gong.cli.rpc import rpc
from gong.rpc.methods import METHODS, build_json_schema
from tests import warm


class Client:
    """A `gong rpc` process, and every line it wrote."""

    def __init__(self, tmp_path, *options):
        self.work = tmp_path / "work"
        self.work.mkdir(exist_ok=True)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
        command = [warm.find_commands() / "gong", "rpc", "-m", "offline/rules", *options]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.env, cwd=self.work
        )
        self.lines = []
        self.number = 0

    def send(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        self.write(json.dumps(request).encode())
        return self.number

    def write(self, line):
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read_until(self, wanted):
        for line in self.process.stdout:
            self.lines.append(json.loads(line))
            if wanted(self.lines[-1]):
                return self.lines[-1]
        raise AssertionError(self.lines)

    def read_answer(self, number):
        """Return the answer to a request; it may be behind that to a later one, and read."""

        def is_answer(line):
            return line.get("id") == number

        return next(filter(is_answer, self.lines), None) or self.read_until(is_answer)

    def ask(self, method, **params):
        answer = self.read_answer(self.send(method, **params))
        return answer.get("result", answer.get("error"))

    def wait_for(self, kind):
        return self.read_until(lambda line: line.get("type") == kind)

    def close(self):
        rest, _ = self.process.communicate(timeout=20)
        self.lines += map(json.loads, rest.splitlines())
        return self.process.returncode


@pytest.fixture
def client(tmp_path):
    made = Client(tmp_path)
    yield made
    made.process.kill()
    made.process.communicate()


@pytest.fixture
def session(client):
    return client.ask("session/new", cwd=str(client.work))["session"]


def test_a_prompt_is_answered_when_its_run_has_ended(client, session):
    """M197"""
    assert client.ask("initialize", protocol=1)["methods"] == [*METHODS]
    done = client.ask("prompt", session=session, text="run echo zebra")
    assert done["text"] == "`echo zebra` printed: zebra"
    assert (done["stop_reason"], done["turns"]) == ("stop", 2)
    kinds = [line["type"] for line in client.lines if "type" in line]
    assert kinds[0] == "session_start"
    assert kinds[-1] == "agent_end"
    assert {line["session"] for line in client.lines if "type" in line} == {session}


def test_a_call_waits_for_its_decision(client, session):
    number = client.send("prompt", session=session, text="run touch zebra.txt")
    asked = client.wait_for("approval_request")
    assert "touch" in asked["why"]
    assert client.ask("approve", session=session, call_id="none", decision="once")["code"] == -32000
    other = {"call_id": asked["call_id"], "decision": "session", "rule": "Bash(rm:*)"}
    refused = client.ask("approve", session=session, **other)["message"]
    assert refused == "the rule 'Bash(rm:*)' was not offered; Bash(touch:*) was"
    wrong = client.ask("approve", session=session, call_id=asked["call_id"], decision="perhaps")
    assert "not a decision about a call" in wrong["message"]
    rule = {"decision": "session", "rule": "Bash(touch:*)"}
    assert client.ask("approve", session=session, call_id=asked["call_id"], **rule) == {}
    client.read_answer(number)
    assert (client.work / "zebra.txt").exists()


@pytest.mark.parametrize("kind", ["question", "plan_proposed"])
def test_the_end_of_the_input_ends_what_the_model_asks(client, tmp_path, kind):
    """A question is answered as where nobody sits, a plan is refused, and nothing waits on."""
    ask = {"name": "ask_user", "args": {"questions": [{"question": "Which?"}]}}
    plan = {"name": "exit_plan_mode", "args": {"plan": "touch a file"}}
    touch = {"name": "bash", "args": {"command": "touch made"}}
    script = tmp_path / "script.json"
    asked = ask if kind == "question" else plan
    script.write_text(json.dumps([{"tool_calls": [asked]}, {"tool_calls": [touch]}, {}]))
    opened = {"cwd": str(client.work), "model": f"scripted/{script}", "permission": "bypass"}
    session = client.ask("session/new", **opened)["session"]
    if kind == "plan_proposed":
        client.ask("set", session=session, permission="plan")
    number = client.send("prompt", session=session, text="go")
    client.wait_for(kind)
    assert client.close() == 0
    assert [line for line in client.lines if line.get("id") == number]
    assert (client.work / "made").exists() is (kind == "question")


def test_a_call_that_is_denied_does_not_run(client, session):
    number = client.send("prompt", session=session, text="run touch zebra.txt")
    call = client.wait_for("approval_request")["call_id"]
    client.ask("approve", session=session, call_id=call, decision="no", reason="not now")
    client.read_answer(number)
    ended = next(line for line in client.lines if line.get("type") == "tool_end")
    assert "not now" in ended["content"][0]["text"]
    assert not (client.work / "zebra.txt").exists()


def test_an_undecided_call_is_denied_after_its_time_limit(tmp_path):
    """M177, C33: 300 seconds, or --answer-timeout; the run goes on."""
    made = Client(tmp_path, "--answer-timeout", "0.2")
    try:
        new = made.ask("session/new", cwd=str(made.work))["session"]
        done = made.ask("prompt", session=new, text="run touch zebra.txt")
        assert done["stop_reason"] == "stop"
        asked = next(line for line in made.lines if line.get("type") == "approval_request")
        late = made.ask("approve", session=new, call_id=asked["call_id"], decision="once")
        assert "no question is open" in late["message"]
        ended = next(line for line in made.lines if line.get("type") == "tool_end")
        assert "0.2 s" in ended["content"][0]["text"]
        assert not (made.work / "zebra.txt").exists()
    finally:
        made.process.kill()
        made.process.communicate()
    default = next(one.default for one in rpc.params if one.name == "answer_timeout")
    assert default == 300


def test_cancel_stops_a_run_that_waits(client, session):
    number = client.send("prompt", session=session, text="run touch zebra.txt")
    client.wait_for("approval_request")
    busy = client.ask("prompt", session=session, text="another")
    assert busy["data"] == {"class": "SessionBusy", "exit_code": 5}
    client.ask("cancel", session=session)
    assert client.read_answer(number)["result"]["stop_reason"] in {"aborted", "cancelled"}
    assert client.ask("prompt", session=session, text="run echo still")["text"].endswith("still")


def test_settings_change_between_runs(client, session):
    changed = client.ask("set", session=session, permission="bypass", tools=["bash"])
    assert (changed["permission"], changed["tools"]) == ("bypass", ["bash"])
    client.ask("prompt", session=session, text="run touch zebra.txt")
    assert (client.work / "zebra.txt").exists()
    assert client.ask("set", session=session, model="nobody/nothing")["data"]["exit_code"] == 2


def test_words_are_queued_during_a_run(client, session):
    number = client.send("prompt", session=session, text="run touch zebra.txt")
    call = client.wait_for("approval_request")["call_id"]
    assert client.ask("follow_up", session=session, text="run echo later")["message"]
    assert client.ask("steer", session=session, text="be brief")["message"]
    client.ask("approve", session=session, call_id=call, decision="once")
    assert "later" in client.read_answer(number)["result"]["text"]


def test_a_session_is_listed_loaded_and_continued(client, session, tmp_path):
    client.ask("prompt", session=session, text="run echo zebra")
    client.ask("close", session=session)
    (listed,) = client.ask("session/list", cwd=str(client.work))["sessions"]
    assert (listed["session"], listed["title"]) == (session, "run echo zebra")
    again = Client(tmp_path)
    loaded = again.ask("session/load", session=session)
    assert loaded["cwd"] == str(client.work)
    assert [one["role"] for one in loaded["messages"]] == [
        *("user", "assistant", "tool", "assistant"),
    ]
    assert again.ask("prompt", session=session, text="run echo otter")["text"].endswith("otter")
    assert again.close() == 0


def test_pages_of_a_list(client):
    for number in range(3):
        session = client.ask("session/new", cwd=str(client.work))["session"]
        client.ask("prompt", session=session, text=f"run echo {number}")
    first = client.ask("session/list", limit=2)
    rest = client.ask("session/list", limit=2, cursor=first["cursor"])
    assert (len(first["sessions"]), len(rest["sessions"]), rest["cursor"]) == (2, 1, None)


def test_two_sessions_run_side_by_side(client, session):
    other = client.ask("session/new", cwd=str(client.work))["session"]
    first = client.send("prompt", session=session, text="run touch one.txt")
    call = client.wait_for("approval_request")["call_id"]
    assert client.ask("prompt", session=other, text="run echo two")["text"].endswith("two")
    client.ask("approve", session=session, call_id=call, decision="once")
    client.read_answer(first)


def test_a_message_of_each_kind_reaches_its_session_alone(client, session):
    """M217, J.9 3.1: a prompt, words before and after its answer, a decision, settings, a stop."""
    other = client.ask("session/new", cwd=str(client.work))["session"]
    sessions = {"zebra": session, "otter": other}
    numbers = {}
    for name, one in sessions.items():
        numbers[name] = client.send("prompt", session=one, text=f"run touch {name}.txt")
        asked = client.wait_for("approval_request")
        assert asked["session"] == one
        sessions[name] = one, asked["call_id"]
    for name, (one, call) in sessions.items():
        client.ask("steer", session=one, text=f"run echo {name} now")
        client.ask("follow_up", session=one, text=f"run echo {name} later")
        client.ask("approve", session=one, call_id=call, decision="once")
        assert client.read_answer(numbers[name])["result"]["text"].endswith(f"{name} later")
    for name, (one, _) in sessions.items():
        own = [line for line in client.lines if line.get("session") == one and "type" in line]
        told = json.dumps(own)
        assert all(f"{name} {word}" in told for word in ("now", "later"))
        assert ("otter" if name == "zebra" else "zebra") not in told
        assert [line["sequence"] for line in own] == [*range(1, len(own) + 1)]
        assert (client.work / f"{name}.txt").exists()
    (one, _), (two, _) = sessions.values()
    assert client.ask("set", session=one, tools=["ls"])["tools"] == ["ls"]
    assert client.ask("set", session=two)["tools"] != ["ls"]
    waits = client.send("prompt", session=two, text="run touch three.txt")
    call = client.wait_for("approval_request")["call_id"]
    client.ask("cancel", session=one)
    client.ask("approve", session=two, call_id=call, decision="once")
    assert client.read_answer(waits)["result"]["stop_reason"] == "stop"
    assert (client.work / "three.txt").exists()


def test_an_answer_without_an_open_question_is_an_error(client, session):
    """M178, M225: before a question, for another call or session, after it, and after the run."""

    def refuse(method, **params):
        return client.ask(method, **{"session": session, **params})["data"]["class"]

    other = client.ask("session/new", cwd=str(client.work))["session"]
    once, unknown = {"decision": "once"}, {"call_id": "none"}
    assert refuse("approve", **unknown, **once) == "ConfigurationError"
    assert refuse("answer", question="none", answers="x") == "ConfigurationError"
    number = client.send("prompt", session=session, text="run touch zebra.txt")
    call = client.wait_for("approval_request")["call_id"]
    assert refuse("approve", **unknown, **once) == "ConfigurationError"
    assert refuse("approve", session=other, call_id=call, **once) == "ConfigurationError"
    assert refuse("answer", question=call, answers="yes") == "ConfigurationError"
    assert client.ask("approve", session=session, call_id=call, decision="no") == {}
    assert refuse("approve", call_id=call, **once) == "ConfigurationError"
    client.read_answer(number)
    assert refuse("approve", call_id=call, **once) == "ConfigurationError"
    client.ask("close", session=session)
    assert refuse("approve", call_id=call, **once) == "UnknownSession"
    assert not (client.work / "zebra.txt").exists()


DEEP = b"[" * 200_000 + b"]" * 200_000


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"not json", -32700),
        (DEEP, -32700),
        (b'{"id":7,"method":"session/list","params":' + DEEP + b"}", -32700),
        (b"\xff\xfe", -32700),
        (b"[]", -32600),
        (b'{"method":"close"}', -32600),
        (b'{"id":true,"method":"close"}', -32600),
        (b'{"id":7,"method":"nothing"}', -32601),
        (b'{"id":7,"method":"prompt","params":{"text":"x"}}', -32602),
        (b'{"id":7,"method":"prompt","params":{"session":"s","text":"x","more":1}}', -32602),
        (b'{"id":7,"method":"prompt","params":{"session":"s","text":"x"}}', -32000),
        (b'{"id":7,"method":"initialize","params":{"protocol":9}}', -32000),
        (b'{"id":7,"method":"session/load","params":{"session":""}}', -32000),
        (b'{"id":7,"method":"session/load","params":{"session":"0000"}}', -32000),
    ],
)
def test_a_wrong_line_costs_itself(client, line, code):
    client.write(line)
    answer = client.read_until(lambda line: "error" in line)
    assert answer["error"]["code"] == code
    assert "session/new" in client.ask("initialize")["methods"]


def test_the_end_of_the_input_answers_what_was_asked(client, session):
    number = client.send("prompt", session=session, text="run touch zebra.txt")
    client.wait_for("approval_request")
    assert client.close() == 0
    answers = [line for line in client.lines if line.get("id") == number]
    assert len(answers) == 1
    assert not (client.work / "zebra.txt").exists()


def test_a_signal_closes_the_sessions(client, session):
    client.send("prompt", session=session, text="run touch zebra.txt")
    client.wait_for("approval_request")
    client.process.send_signal(signal.SIGTERM)
    assert client.process.wait(20) == 0
    verified = subprocess.run(
        [sys.executable, "-m", "tape", "verify", session],
        env=client.env,
        capture_output=True,
        check=False,
    )
    assert verified.returncode == 0, verified


def test_a_session_without_a_prompt_leaves_nothing(client, session):
    client.ask("close", session=session)
    assert client.ask("session/list")["sessions"] == []


def test_every_line_fits_the_schema(client, session):
    validator = jsonschema.Draft202012Validator(build_json_schema())
    client.ask("prompt", session=session, text="run echo zebra")
    client.ask("session/list")
    client.ask("prompt", session="none", text="x")
    for line in client.lines:
        assert validator.is_valid(line), line
    requests = [{"id": 1, "method": "prompt", "params": {"session": "s", "text": "x"}}]
    assert all(map(validator.is_valid, requests))
    assert not validator.is_valid({"id": 1, "method": "prompt", "params": {"text": "x"}, "x": {}})
