"""One session as Claude Code, Codex, Gemini CLI and Harbor's ATIF record it."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from tests.tape.formats.sessions.lines import ClaudeFile, write_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FOLDER = "/src/app"


class Call(NamedTuple):
    """A call: what it does, and what came back."""

    does: str
    """read, edit, write or run."""
    what: str
    """A path, relative to FOLDER, or a command."""
    text: str = ""
    """The text that is replaced, or written."""
    results: tuple[str, ...] = ("done",)
    fails: bool = False
    overwrites: bool = False


def write_claude(calls: Sequence[Call]) -> bytes:
    """Return a transcript of Claude Code."""
    file = ClaudeFile(cwd=FOLDER)
    parent = file.say("u0", None, "Mend it")
    for number, call in enumerate(calls):
        path = call.what if call.what.startswith("/") else f"{FOLDER}/{call.what}"
        name, arguments = {
            "read": ("Read", {"file_path": path}),
            "edit": ("Edit", {"file_path": path, "old_string": call.text, "new_string": "new"}),
            "write": ("Write", {"file_path": path, "content": call.text}),
            "run": ("Bash", {"command": call.what, "description": "run it"}),
        }[call.does]
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}
        usage = {"input_tokens": 100, "output_tokens": 10}
        parent = file.answer(f"a{number}", parent, block, message=f"msg_{number}", usage=usage)
        for place, text in enumerate(call.results):
            result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": text}
            message = {"role": "user", "content": [{**result, "is_error": call.fails}]}
            details = {"type": "update" if call.overwrites else "create", "filePath": path}
            more = {"toolUseResult": details} if call.does == "write" else {}
            parent = file.add("user", f"r{number}.{place}", parent, message=message, **more)
    return file.data


def write_codex(calls: Sequence[Call]) -> bytes:
    """Return a rollout of Codex, which reads by commands and writes by patches."""
    seconds = count()
    lines = []

    def add(kind: str, **payload: object) -> None:
        time = f"2026-05-01T10:00:{next(seconds):02}.000Z"
        lines.append({"timestamp": time, "type": kind, "payload": payload})

    add("session_meta", id="0199a000-0000-7000-8000-000000000001", cwd=FOLDER, originator="codex")
    add("turn_context", cwd=FOLDER, model="gpt-5.1-codex")
    text = {"type": "input_text", "text": "Mend it"}
    add("response_item", type="message", role="user", content=[text])
    for number, call in enumerate(calls):
        identity = f"call_{number}"
        if call.does in {"read", "run"}:
            command = f"sed -n 1,200p {call.what}" if call.does == "read" else call.what
            arguments = json.dumps({"cmd": command, "workdir": FOLDER})
            words = {"name": "exec_command", "arguments": arguments, "call_id": identity}
            add("response_item", type="function_call", **words)
            output = "function_call_output"
        else:
            head = "Update" if call.does == "edit" else "Add"
            body = f"@@\n-{call.text}\n+new" if call.does == "edit" else f"+{call.text}"
            patch = f"*** Begin Patch\n*** {head} File: {call.what}\n{body}\n*** End Patch\n"
            words = {"name": "apply_patch", "input": patch, "call_id": identity}
            add("response_item", type="custom_tool_call", status="completed", **words)
            output = "custom_tool_call_output"
        for text in call.results:
            code = int(call.fails)
            shown = f"Exit code: {code}\nWall time: 0.1 seconds\nOutput:\n{text}\n"
            add("response_item", type=output, call_id=identity, output=shown)
        usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
        total = {"total_tokens": 110 * (number + 1)}
        info = {"last_token_usage": usage, "total_token_usage": total}
        add("event_msg", type="token_count", info=info)
    return write_lines(*lines)


def write_gemini(calls: Sequence[Call]) -> bytes:
    """Return a chat of Gemini CLI, which keeps at most one result beside its call."""
    messages: list[object] = [{"id": "u0", "type": "user", "content": "Mend it"}]
    for number, call in enumerate(calls):
        name, arguments = {
            "read": ("read_file", {"file_path": call.what}),
            "edit": (
                "replace",
                {"file_path": call.what, "old_string": call.text, "new_string": "new"},
            ),
            "write": ("write_file", {"file_path": call.what, "content": call.text}),
            "run": ("run_shell_command", {"command": call.what}),
        }[call.does]
        made = {"id": f"{name}-{number}", "name": name, "args": arguments}
        said = "error" if call.fails else "output"
        for text in call.results[:1]:
            shown = f"Successfully overwrote file: {call.what}" if call.overwrites else text
            response = {"id": made["id"], "name": name, "response": {said: shown}}
            made |= {"result": [{"functionResponse": response}]}
        made |= {"status": "error" if call.fails else "success"}
        tokens = {"input": 100, "output": 10, "total": 110}
        answer = {"id": f"g{number}", "type": "gemini", "content": "", "toolCalls": [made]}
        messages.append({**answer, "model": "gemini-2.5-pro", "tokens": tokens})
    header = {"sessionId": "s-1", "projectHash": "f" * 64, "directories": [FOLDER]}
    times = {"startTime": "2026-05-01T10:00:00Z", "lastUpdated": "2026-05-01T10:01:00Z"}
    return json.dumps({**header, **times, "messages": messages}).encode()


def write_atif(calls: Sequence[Call], **more: object) -> bytes:
    """Return a trajectory as Harbor keeps it, with the tools of SWE-agent."""
    steps: list[object] = [{"step_id": 1, "source": "user", "message": "Mend it"}]
    for number, call in enumerate(calls):
        name, arguments = {
            "read": ("str_replace_editor", {"command": "view", "path": call.what}),
            "edit": (
                "str_replace_editor",
                {
                    "command": "str_replace",
                    "path": call.what,
                    "old_str": call.text,
                    "new_str": "new",
                },
            ),
            "write": (
                "str_replace_editor",
                {"command": "create", "path": call.what, "file_text": call.text},
            ),
            "run": ("bash", {"command": call.what}),
        }[call.does]
        made = {"tool_call_id": f"c{number}", "function_name": name, "arguments": arguments}
        results = [
            {"source_call_id": f"c{number}", "content": text, "extra": {"is_error": call.fails}}
            for text in call.results
        ]
        metrics = {"prompt_tokens": 100, "completion_tokens": 10, "cost_usd": 0.01}
        answer = {"source": "agent", "message": "", "model_name": "m", "metrics": metrics}
        step = {"step_id": number + 2, **answer, "tool_calls": [made]}
        steps.append({**step, "observation": {"results": results}})
    head = {"schema_version": "ATIF-v1.6", "session_id": "s", "extra": {"cwd": FOLDER}}
    agent = {"name": "swe-agent", "version": "1"}
    return json.dumps({**head, "agent": agent, "steps": steps, **more}).encode()


WRITERS: dict[str, Callable[[Sequence[Call]], bytes]] = {
    "claude": write_claude,
    "codex": write_codex,
    "gemini": write_gemini,
    "atif": write_atif,
}
FINE = (
    Call("read", "a.py", results=("def add(a, b):\n    return a - b",)),
    Call("edit", "a.py", "return a - b"),
    Call("write", "b.py", "import a"),
    Call("edit", "b.py", "import a"),
    Call("run", "cat src/c.py | head -50", results=("x = 1",)),
    Call("edit", "src/c.py", "x = 1"),
    Call("run", "python -m pytest -q 2>/dev/null > out.txt"),
)
