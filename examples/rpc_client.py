"""A client of `gong rpc`: start it, ask, decide about calls, read the answer.

    python examples/rpc_client.py STORE "PROMPT" [MODEL]

Each request, answer and event is a line. Calls that gong asks about are allowed if you say so.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path


class GongError(Exception):
    """An error that gong answered with."""


class GongClient:
    """One `gong rpc` process."""

    def __init__(self, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gong", "rpc", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.events: queue.Queue[dict] = queue.Queue()
        self._answers: dict[int, queue.Queue[dict]] = {}
        self._ids = count(1)
        threading.Thread(target=self._read_lines, daemon=True).start()
        self.ask("initialize", protocol=1)

    def _read_lines(self) -> None:
        for line in self.process.stdout:
            message = json.loads(line)
            if "id" in message:
                self._answers[message["id"]].put(message)
            else:
                self.events.put(message)
        self.events.put({"type": "closed"})

    def send(self, method: str, **params: object) -> queue.Queue[dict]:
        """Send a request; its answer comes into the queue that is returned."""
        number = next(self._ids)
        self._answers[number] = answer = queue.Queue()
        request = {"id": number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(request) + "\n")
        return answer

    def ask(self, method: str, **params: object) -> dict:
        """Send a request and return its result; raise GongError."""
        return self.read_result(self.send(method, **params))

    def read_result(self, answer: queue.Queue[dict]) -> dict:
        message = answer.get()
        if "error" in message:
            raise GongError(message["error"]["message"])
        return message["result"]

    def close(self) -> None:
        """End the input: gong answers what was asked, and ends."""
        self.process.stdin.close()
        self.process.wait()


def run_prompt(client: GongClient, session: str, text: str) -> str:
    """Answer a prompt; print what happens, and ask about calls. Returns the last answer."""
    answer = client.send("prompt", session=session, text=text)
    while (event := client.events.get())["type"] not in {"agent_end", "closed"}:
        if event["type"] == "message_update" and event["part"] == "text":
            print(event["delta"], end="", flush=True)
        elif event["type"] == "tool_start":
            print(f"\n[{event['name']} {json.dumps(event.get('args'))}]")
        elif event["type"] == "approval_request":
            allowed = input(f"{event['why']}. Allow it? [y/N] ").lower().startswith("y")
            decision = "once" if allowed else "no"
            call = event["call_id"]
            client.ask("approve", session=session, call_id=call, decision=decision)
    print()
    return client.read_result(answer)["text"]


def main(store: str, prompt: str, model: str = "offline/rules") -> None:
    """Open a session in this folder, answer one prompt, and close it."""
    client = GongClient("--store", store, "-m", model)
    session = client.ask("session/new", cwd=str(Path.cwd()))["session"]
    run_prompt(client, session, prompt)
    client.ask("close", session=session)
    client.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
