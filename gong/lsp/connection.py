"""One language server: a process that is started with its first use, asked, and ended.

Its own questions are answered: its settings, its progress, what it may do. A change of files that
it asks for is refused, as files change by calls of the model only. What it says of files (pushed or
when asked, as it is able to) is kept by file, with the version of the text that it is about.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ..child_programs import kill_group
from .diagnostics import parse_diagnostics
from .messages import MessageReader, ServerFault, encode_message
from .positions import ENCODINGS, to_path, to_uri

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .diagnostics import Diagnostic
    from .positions import Encoding
    from .servers import LanguageServerConfig

_START_SECONDS = 45.0
_END_SECONDS = 2.0
_SEND_SECONDS = 20.0
"""How long a server may leave unread what it is sent."""
_MAX_UNREAD = 64 << 20
_CHUNK = 1 << 16
_METHOD_NOT_FOUND = -32601
_CAPABILITIES: dict[str, Any] = {
    "general": {"positionEncodings": [*ENCODINGS]},
    "textDocument": {
        "synchronization": {"didSave": True},
        "publishDiagnostics": {"versionSupport": True},
        "diagnostic": {},
        "definition": {"linkSupport": True},
        "references": {},
        "hover": {"contentFormat": ["plaintext", "markdown"]},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
    },
    "workspace": {"configuration": True, "workspaceFolders": True, "symbol": {}},
    "window": {"workDoneProgress": True},
}


class OpenDocument:
    """A file as the server knows it, and what it says of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.version = 1
        self.diagnostics: tuple[Diagnostic, ...] | None = None
        """What it said last; None before it said anything."""
        self.checked_version = 0
        """The version of the text that this is about."""
        self.news = asyncio.Event()
        """Set with each word of the server about the file."""


class LanguageServer:
    """A server and the files that are open there."""

    def __init__(
        self,
        config: LanguageServerConfig,
        folder: str,
        words: Sequence[str],
        variables: Mapping[str, str],
    ) -> None:
        """Take the command as it is run in `folder`; nothing is started."""
        self.config, self.folder = config, folder
        self._words, self._variables = tuple(words), dict(variables)
        self.documents: dict[str, OpenDocument] = {}
        """By path."""
        self.encoding: Encoding = "utf-16"
        self.can: Mapping[str, Any] = {}
        """What it is able to do, as it said."""
        self.error = ""
        """Why it cannot be used any more; empty while it can."""
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._open: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._lock = asyncio.Lock()

    async def start(self) -> None:
        """Start it, once; raises ServerFault where it does not start, or ended before."""
        if self.error:
            raise ServerFault(f"{self.config.name}: {self.error}")
        if self._starting is None:
            self._starting = asyncio.create_task(self._begin())
        try:
            async with asyncio.timeout(_START_SECONDS):
                await asyncio.shield(self._starting)
        except TimeoutError:
            await self._give_up(f"it was not ready after {_START_SECONDS:g} s")
        if self.error:
            raise ServerFault(f"{self.config.name}: {self.error}")

    async def _begin(self) -> None:
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=self.folder,
                env=self._variables,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self.error = f"it cannot be started: {error}"
            return
        self._reading = asyncio.create_task(self._read())
        root = to_uri(self.folder)
        try:
            answer = await self._ask(
                "initialize",
                {
                    "processId": os.getpid(),
                    "clientInfo": {"name": "gong"},
                    "rootUri": root,
                    "workspaceFolders": [{"uri": root, "name": PurePath(self.folder).name}],
                    "capabilities": _CAPABILITIES,
                    **({"initializationOptions": o} if (o := self.config.options) else {}),
                },
            )
        except ServerFault as error:
            self.error = self.error or str(error)
            return
        able = answer.get("capabilities") if isinstance(answer, dict) else None
        self.can = able if isinstance(able, dict) else {}
        encoding = self.can.get("positionEncoding")
        self.encoding = encoding if encoding in ENCODINGS else "utf-16"
        await self._notify("initialized", {})

    async def request(self, method: str, params: object, seconds: float) -> Any:
        """Return the result of a request; raises ServerFault, also where it takes longer."""
        await self.start()
        try:
            async with asyncio.timeout(seconds):
                return await self._ask(method, params)
        except TimeoutError:
            raise ServerFault(
                f"{self.config.name} did not answer within {seconds:g} s: it may still be reading"
            ) from None

    async def show(self, path: str, text: str) -> OpenDocument:
        """Let the server know a file as it is now; raises ServerFault."""
        await self.start()
        async with self._lock:
            document, uri = self.documents.get(path), to_uri(path)
            if document is None:
                document = self.documents[path] = OpenDocument(text)
                language = self.config.find_language(path) or "plaintext"
                about = {"uri": uri, "languageId": language, "version": 1, "text": text}
                await self._notify("textDocument/didOpen", {"textDocument": about})
            elif document.text != text:
                document.text, document.version = text, document.version + 1
                changed = {
                    "textDocument": {"uri": uri, "version": document.version},
                    "contentChanges": [{"text": text}],
                }
                await self._notify("textDocument/didChange", changed)
                await self._notify("textDocument/didSave", {"textDocument": {"uri": uri}})
        return document

    async def find_diagnostics(self, path: str, seconds: float) -> tuple[Diagnostic, ...] | None:
        """Return what it says of an open file as it is now; None where it says nothing so soon."""
        document = self.documents[path]
        version = document.version
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                if self.can.get("diagnosticProvider") not in (None, False):  # it may be {}
                    await self._pull(path, document)
                while document.checked_version < version and not self.error:
                    document.news.clear()
                    await document.news.wait()
        return document.diagnostics if document.checked_version >= version else None

    async def _pull(self, path: str, document: OpenDocument) -> None:
        version = document.version
        about = {"textDocument": {"uri": to_uri(path)}}
        answer = await self._ask("textDocument/diagnostic", about)
        if isinstance(answer, dict) and answer.get("kind") != "unchanged":
            document.diagnostics = parse_diagnostics(answer.get("items"))
        document.checked_version = max(document.checked_version, version)

    async def close(self) -> None:
        """End it: by asking first, then all of its processes."""
        if self._starting is not None and not self._starting.done():
            self._starting.cancel()
        if self._process is not None and self._process.returncode is None and not self.error:
            with suppress(ServerFault, TimeoutError, OSError):
                async with asyncio.timeout(_END_SECONDS):
                    await self._ask("shutdown", None)
                    await self._notify("exit", None)
                    await self._process.wait()
        await self._give_up("it was ended")

    async def _give_up(self, why: str) -> None:
        self.error = self.error or why
        if self._reading is not None and self._reading is not asyncio.current_task():
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading
        if self._process is not None:
            await kill_group(self._process)
        self._end_requests()

    def _end_requests(self) -> None:
        for future in self._open.values():
            if not future.done():
                future.set_exception(ServerFault(f"{self.config.name}: {self.error}"))
        self._open.clear()
        for document in self.documents.values():
            document.news.set()

    async def _ask(self, method: str, params: object) -> Any:
        self._number += 1
        number = self._number
        future = self._open[number] = asyncio.get_running_loop().create_future()
        try:
            await self._send({"id": number, "method": method, "params": params})
            return await future
        finally:
            if self._open.pop(number, None) is not None and not future.done():
                with suppress(ServerFault):
                    await self._notify("$/cancelRequest", {"id": number})

    async def _notify(self, method: str, params: object) -> None:
        await self._send({"method": method, "params": params})

    async def _send(self, message: dict[str, Any]) -> None:
        try:
            async with asyncio.timeout(_SEND_SECONDS):
                await self._write(message).drain()
        except TimeoutError:
            await self._give_up(f"it read nothing for {_SEND_SECONDS:g} s")
            raise ServerFault(f"{self.config.name}: {self.error}") from None
        except (OSError, RuntimeError) as error:
            raise ServerFault(f"{self.config.name} takes no requests any more: {error}") from error

    def _write(self, message: dict[str, Any]) -> asyncio.StreamWriter:
        """Write a message, without a wait until the server has read it."""
        process = self._process
        if self.error or process is None or process.stdin is None:
            raise ServerFault(f"{self.config.name}: {self.error or 'it was not started'}")
        if message.get("params", ...) is None:
            del message["params"]
        process.stdin.write(encode_message({"jsonrpc": "2.0", **message}))
        return process.stdin

    async def _read(self) -> None:
        """Read what the server writes, until its end."""
        process = self._process
        if process is None or process.stdout is None:
            return
        reader = MessageReader()
        try:
            while data := await process.stdout.read(_CHUNK):
                for message in reader.read(data):
                    self._take(message)
            why = f"it ended with exit code {await process.wait()}"
        except (ServerFault, OSError) as error:
            why = str(error)
        await self._give_up(why)

    def _take(self, message: dict[str, Any]) -> None:
        method, number = message.get("method"), message.get("id")
        if method is None:
            self._take_answer(message)
        elif number is None:
            if method == "textDocument/publishDiagnostics":
                self._take_diagnostics(message.get("params"))
        else:
            answer = self._answer(method, message.get("params"))
            with suppress(ServerFault, OSError, RuntimeError):
                # Not waited for: a server that waits for us would wait for ever.
                self._write({"id": number, **answer})
            stdin = self._process.stdin if self._process is not None else None
            if stdin is not None and stdin.transport.get_write_buffer_size() > _MAX_UNREAD:
                raise ServerFault("it asks without reading the answers")

    def _take_answer(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        future = self._open.get(number) if isinstance(number, int) else None
        if future is None or future.done():
            return
        error = message.get("error")
        if error is None:
            future.set_result(message.get("result"))
            return
        text = error.get("message") if isinstance(error, dict) else error
        future.set_exception(ServerFault(f"{self.config.name}: {text}"))

    def _take_diagnostics(self, params: object) -> None:
        if not isinstance(params, dict) or not isinstance(params.get("uri"), str):
            return
        document = self.documents.get(to_path(params["uri"]) or "")
        if document is None:  # of a file that was not asked about
            return
        version = params.get("version")
        version = version if isinstance(version, int) else document.version
        if version < document.checked_version:  # of an older text
            return
        document.diagnostics = parse_diagnostics(params.get("diagnostics"))
        document.checked_version = version
        document.news.set()

    def _answer(self, method: str, params: object) -> dict[str, Any]:
        """Return the answer to a question of the server."""
        match method:
            case "workspace/configuration":
                items = params.get("items", ()) if isinstance(params, dict) else ()
                return {"result": [self._find_settings(item) for item in items]}
            case "workspace/workspaceFolders":
                root = to_uri(self.folder)
                return {"result": [{"uri": root, "name": PurePath(self.folder).name}]}
            case "workspace/applyEdit":
                return {"result": {"applied": False, "failureReason": "files change by calls only"}}
            case (
                "client/registerCapability"
                | "client/unregisterCapability"
                | "window/workDoneProgress/create"
                | "window/showMessageRequest"
                | "workspace/diagnostic/refresh"
                | "workspace/semanticTokens/refresh"
                | "workspace/inlayHint/refresh"
                | "workspace/codeLens/refresh"
            ):
                return {"result": None}
            case _:
                return {"error": {"code": _METHOD_NOT_FOUND, "message": f"{method} is not known"}}

    def _find_settings(self, item: object) -> Any:
        """Return the settings of a section, such as `python.analysis`; null without any."""
        settings: Any = self.config.settings
        section = item.get("section") if isinstance(item, dict) else None
        for name in str(section or "").split(".") if section else ():
            settings = settings.get(name) if isinstance(settings, dict) else None
        return settings
