"""`gong serve` in a process of its own: the methods over HTTP, events as a stream, who gets in."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from tests import warm


class Server:
    """A `gong serve` process."""

    def __init__(self, tmp_path, *options):
        self.work = tmp_path / "work"
        self.work.mkdir()
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
        command = [warm.find_commands() / "gong", "serve", "--port", "0", "-m", "offline/rules"]
        command += options
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, env=env, cwd=self.work, text=True
        )
        address = self.process.stdout.readline().split()
        self.token = self.process.stdout.readline().split()[1]
        assert address[1].startswith("http://127.0.0.1:")
        self.port = int(address[1].rpartition(":")[2])
        self.number = 0

    def connect(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        named = {"Authorization": f"Bearer {self.token}"}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, {k: v for k, v in named.items() if v is not None})
        return connection, connection.getresponse()

    def get_status(self, method, path, body=None, **headers):
        connection, response = self.connect(method, path, body, **headers)
        response.read()
        connection.close()
        return response.status

    def ask(self, method, **params):
        self.number += 1
        number = self.number
        body = json.dumps({"id": number, "method": method, "params": params})
        connection, response = self.connect("POST", "/rpc", body)
        answer = json.loads(response.read())
        connection.close()
        assert answer["id"] == number
        return answer.get("result", answer.get("error"))

    def read_events(self, until, path="/events", **headers):
        """Return the events up to one for which `until` is true, and the number of the last."""
        connection, response = self.connect("GET", path, **headers)
        events, number = [], 0
        assert response.headers["content-type"].startswith("text/event-stream")
        for line in response:
            if line.startswith(b"id: "):
                number = int(line[4:])
            elif line.startswith(b"data: "):
                events.append(json.loads(line[6:]))
                if until(events[-1]):
                    break
        connection.close()
        return events, number


@pytest.fixture
def server(tmp_path):
    made = Server(tmp_path)
    yield made
    made.process.kill()
    made.process.communicate()


def test_json_without_an_end_costs_its_request_only(server):
    deep = b"[" * 200_000 + b"]" * 200_000
    for body in (deep, b'{"id":1,"method":"session/list","params":' + deep + b"}"):
        connection, response = server.connect("POST", "/rpc", body)
        assert json.loads(response.read())["error"]["code"] == -32700
        connection.close()
    assert server.ask("session/list")["sessions"] == []


def test_a_prompt_is_answered_and_its_events_are_streamed(server):
    """M214: callers outside reach sessions over HTTP."""
    session = server.ask("session/new", cwd=str(server.work))["session"]
    found = {}

    def read():
        found["events"] = server.read_events(
            lambda event: event["type"] == "agent_end",
            f"/events?session={session}",
            Last_Event_ID="0",
        )

    reader = threading.Thread(target=read)
    reader.start()
    assert server.ask("prompt", session=session, text="run echo zebra")["text"].endswith("zebra")
    reader.join(30)
    events, number = found["events"]
    assert events[0]["type"] == "session_start"
    assert {event["session"] for event in events} == {session}
    later, _ = server.read_events(lambda _: True, Last_Event_ID=str(number - 1))
    assert later[0]["type"] == "agent_end"


def test_a_call_waits_for_its_decision(server):
    session = server.ask("session/new", cwd=str(server.work))["session"]
    answers = []
    asking = threading.Thread(
        target=lambda: answers.append(server.ask("prompt", session=session, text="run touch a.txt"))
    )
    asking.start()
    events, _ = server.read_events(
        lambda event: event["type"] == "approval_request", Last_Event_ID="0"
    )
    call = events[-1]["call_id"]
    assert server.ask("approve", session=session, call_id=call, decision="once") == {}
    asking.join(30)
    assert (server.work / "a.txt").exists()


def test_who_has_no_token_or_comes_from_elsewhere_is_refused(server):
    assert server.get_status("GET", "/schema") == 200
    assert server.get_status("GET", "/schema", Authorization=None) == 401
    assert server.get_status("POST", "/rpc", "{}", Authorization="Bearer wrong") == 401
    assert server.get_status("GET", "/events", Authorization="Basic x") == 401
    assert server.get_status("POST", "/rpc", "{}", Host="evil.example") == 403
    assert server.get_status("POST", "/rpc", "{}", Origin="http://evil.example") == 403
    assert server.get_status("POST", "/rpc", "{}", Origin="http://localhost:3000") == 200
    assert server.get_status("GET", "/nothing") == 404


def test_a_signal_ends_it_and_its_readers(server):
    session = server.ask("session/new", cwd=str(server.work))["session"]
    connection, response = server.connect("GET", "/events")
    assert response.readline() == b": connected\n"
    server.ask("prompt", session=session, text="run echo zebra")
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(20) == 130
    connection.close()
    check = [sys.executable, "-m", "tape", "verify", session]
    env = {"PATH": os.environ["PATH"], "HOME": str(server.work.parent)}
    assert subprocess.run(check, env=env, capture_output=True, check=False).returncode == 0


def test_an_address_that_others_reach_has_to_be_meant(tmp_path):
    command = [sys.executable, "-m", "gong", "serve", "--host", "0.0.0.0"]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--allow-remote" in done.stderr
