"""A client of language servers with nothing around it: what ours is held against."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

SERVERS = Path(os.environ.get("TAPE_LANGUAGE_SERVERS", "/nonexistent")) / "node_modules/.bin"
"""Where npm installed TypeScript 7 and basedpyright: `.ci/run` does."""
COMMANDS = {
    "basedpyright": ("basedpyright-langserver", "--stdio"),
    "tsc": ("tsc", "--lsp", "--stdio"),
}
_SECONDS = 120
_CAPABILITIES = {
    "textDocument": {
        "publishDiagnostics": {"versionSupport": True},
        "diagnostic": {},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
    },
    "workspace": {"configuration": True, "workspaceFolders": True},
}


class BareClient:
    """A server that is asked one thing after another."""

    def __init__(self, name: str, folder: Path) -> None:
        program, *words = COMMANDS[name]
        self.process = subprocess.Popen(
            [SERVERS / program, *words],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._messages: queue.Queue[dict[str, Any]] = queue.Queue()
        self._number = 0
        self._pushed: dict[str, dict[str, Any]] = {}
        self._versions: dict[str, int] = {}
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        root = folder.as_uri()
        folders = [{"uri": root, "name": folder.name}]
        about = {"processId": os.getpid(), "rootUri": root, "workspaceFolders": folders}
        answer = self.ask("initialize", {**about, "capabilities": _CAPABILITIES})
        self.pulls = bool(answer["capabilities"].get("diagnosticProvider"))
        self.notify("initialized", {})

    def show(self, file: Path, language: str) -> None:
        """Let the server know a file as it is now."""
        uri, text = file.as_uri(), file.read_text("utf-8")
        version = self._versions[uri] = self._versions.get(uri, 0) + 1
        if version == 1:
            document = {"uri": uri, "languageId": language, "version": 1, "text": text}
            self.notify("textDocument/didOpen", {"textDocument": document})
        else:
            document = {"uri": uri, "version": version}
            changes = {"textDocument": document, "contentChanges": [{"text": text}]}
            self.notify("textDocument/didChange", changes)

    def list_diagnostics(self, file: Path) -> list[dict[str, Any]]:
        """Return what the server says of a file as it was shown last."""
        uri = file.as_uri()
        if self.pulls:
            return self.ask("textDocument/diagnostic", {"textDocument": {"uri": uri}})["items"]
        while self._pushed.get(uri, {}).get("version", 0) < self._versions[uri]:
            self._take(self._messages.get(timeout=_SECONDS))
        return self._pushed[uri]["diagnostics"]

    def ask(self, method: str, params: object) -> Any:
        """Return the result of a request."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            message = self._messages.get(timeout=_SECONDS)
            if "method" not in message and message.get("id") == self._number:
                return message["result"]
            self._take(message)

    def notify(self, method: str, params: object) -> None:
        self._send({"method": method, "params": params})

    def close(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reading.join()
        self.process.stdin.close()
        self.process.stdout.close()

    def _take(self, message: dict[str, Any]) -> None:
        if message.get("method") == "textDocument/publishDiagnostics":
            self._pushed[message["params"]["uri"]] = message["params"]
        elif "method" in message and "id" in message:
            asks = message["method"] == "workspace/configuration"
            result = [None for _ in message["params"]["items"]] if asks else None
            self._send({"id": message["id"], "result": result})

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
        self.process.stdin.flush()

    def _read(self) -> None:
        output, length = self.process.stdout, 0
        while line := output.readline():
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
            elif line == b"\r\n":
                body = output.read(length)
                if len(body) < length:  # it was ended
                    return
                self._messages.put(json.loads(body))
