"""The language servers of one session: started with their first use, ended with the session.

As a source of tools they bring `lsp`, with outlines by grammar where no server takes a file. As a
watcher of calls they add what is newly wrong in a file to the result of the call that changed it:
what a server says within two seconds, and what comes later to the result of a later call. A server
that fails is named once, and the session continues.

    the call                 before it runs                        when it has run
    -----------------------  ------------------------------------  -----------------------------
    changes a file           the server gets the file as it is     as it is now; new faults are
                                                                   added to the result
    any other                                                      faults that came late are added
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from tape.files.calls import FileRead, parse_file_calls
from tape.model.entries import Text

from ..env.local import build_child_variables
from ..tools.tool import AgentTool, ToolOutcome
from .answers import (
    format_hover,
    format_outline,
    format_places,
    format_symbols,
    list_places,
)
from .connection import LanguageServer
from .diagnostics import format_diagnostics, select_new
from .grammar_outline import OutlineError, find_language
from .messages import ServerFault
from .outline_program import read_outline
from .positions import Spot, find_symbol, split_lines, to_position, to_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tape.model.entries import ToolCall

    from ..env.sandbox.sandbox import Sandbox
    from ..env.variables import VariableRules
    from ..tools.registry import ToolRegistry
    from ..tools.tool import ToolContext
    from .connection import OpenDocument
    from .diagnostics import Diagnostic
    from .servers import LanguageServerConfig

_BEGIN_SECONDS = 1.0
"""How long the first change of a file waits for what is wrong in it before."""
_EDIT_SECONDS = 2.0
"""How long the result of an edit waits for what a server says of it."""
_LATE_SECONDS = 60.0
"""How long a server may take to say it to the result of a later call."""
_ANSWER_SECONDS = 30.0
_MAX_FILE_BYTES = 2 << 20
"""Larger files are not shown to a server."""
Operation = Literal["definition", "references", "hover", "symbols", "outline", "diagnostics"]
_METHODS = {
    "definition": "textDocument/definition",
    "references": "textDocument/references",
    "hover": "textDocument/hover",
}


class LspArguments(Struct, frozen=True):
    """What is asked, and about which place."""

    operation: Operation
    path: Annotated[str, Meta(description="The file; for symbols any file of the language")]
    symbol: Annotated[
        str,
        Meta(description="The name it is about, as written in the file; for symbols a part of it"),
    ] = ""
    line: Annotated[int, Meta(ge=1, description="The line that the symbol stands in")] | None = None


class OutlineArguments(Struct, frozen=True):
    """The file whose outline is asked for."""

    path: str
    operation: Literal["outline"] = "outline"


class SessionLanguages:
    """The language servers of a session: an `agent.setup.ToolSource`, and a `CallWatcher`."""

    def __init__(
        self,
        servers: Sequence[LanguageServerConfig],
        *,
        folder: str,
        environ: Mapping[str, str],
        rules: VariableRules,
        sandbox: Sandbox | None = None,
        find_denied: Callable[[str], str] | None = None,
    ) -> None:
        """Take the servers in their order; nothing is started, and later inside the `sandbox`.

        Without servers the tool has outlines only.
        `find_denied` returns the rule that denies to read an absolute path, or "".
        """
        self._find_denied = find_denied
        self._configs, self._folder = tuple(servers), folder
        self._environ, self._rules, self._sandbox = environ, rules, sandbox
        self._servers: dict[str, LanguageServer] = {}
        """Those that were started, by name."""
        self._named: set[str] = set()
        """The servers whose failure was told."""
        self._late: dict[str, asyncio.Task[str]] = {}
        """What is still waited for, by file."""
        self._beginning = set[asyncio.Task[None]]()
        """Files that are being shown to a server for the first time."""

    async def offer(self, tools: ToolRegistry, *, has_person: bool) -> list[str]:
        """Bring the tool, once; return which servers have failed."""
        del has_person
        if tools.get("lsp") is None:
            tools.register(self._build_tool())
            tools.activate(["lsp"])
            tools.watcher = self
        failed = [server for server in self._servers.values() if server.error]
        remarks = [
            f"language server {server.config.name}: {server.error}"
            for server in failed
            if server.config.name not in self._named
        ]
        self._named.update(server.config.name for server in failed)
        return remarks

    async def read_mentions(self, prompt: str) -> tuple[list[tuple[str, bytes, str]], list[str]]:
        """Return nothing: no prompt names a language server."""
        del prompt
        return [], []

    async def close(self) -> None:
        """End all servers."""
        tasks = [*self._late.values(), *self._beginning]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(server.close() for server in self._servers.values()))

    # --- the tool -------------------------------------------------------------------------------

    def _build_tool(self) -> AgentTool:
        if not self._configs:
            return AgentTool(
                name="lsp",
                description="Show the outline of a file of code: its symbols and their lines.",
                arguments=OutlineArguments,
                run=self._run,
                replay="safe",
            )
        names = ", ".join(config.name for config in self._configs)
        return AgentTool(
            name="lsp",
            description=(
                f"Ask a language server ({names}) about code: the definition of a symbol, its"
                " references, its type and documentation (hover), symbols of the project by name,"
                " the outline of a file, or the diagnostics of a file."
            ),
            arguments=LspArguments,
            run=self._run,
            replay="safe",
        )

    async def _run(
        self, arguments: LspArguments | OutlineArguments, context: ToolContext
    ) -> ToolOutcome:
        path = await context.env.real_path(context.env.resolve(arguments.path))
        server = self._find_server(path)
        try:
            if server is None or isinstance(arguments, OutlineArguments):
                return await self._answer_without_server(arguments, path)
            text = await asyncio.to_thread(_read_file, path)
            try:
                document = await server.show(path, text)
                return await self._answer(arguments, path, server, document)
            except ServerFault as fault:
                if arguments.operation != "outline" or not find_language(path):
                    raise
                outline = await self._read_outline(path)
                return ToolOutcome.from_text(f"{outline}\n\n(by its grammar: {fault})")
        except FileNotFoundError:
            return ToolOutcome.error(f"File not found: {arguments.path}", kind="FileNotFound")
        except (OSError, ServerFault, OutlineError) as error:
            return ToolOutcome.error(f"{error}")

    async def _answer_without_server(
        self, arguments: LspArguments | OutlineArguments, path: str
    ) -> ToolOutcome:
        """Return the outline of a file by its grammar; else which servers there are."""
        if arguments.operation == "outline" and find_language(path):
            return ToolOutcome.from_text(await self._read_outline(path))
        names = ", ".join(f"{c.name} ({' '.join(c.languages)})" for c in self._configs)
        return ToolOutcome.error(
            f"No language server takes {arguments.path}. There are: {names or 'none'}.",
            kind="ValidationError",
        )

    async def _answer(
        self, arguments: LspArguments, path: str, server: LanguageServer, document: OpenDocument
    ) -> ToolOutcome:
        about = {"textDocument": {"uri": to_uri(path)}}
        lines = split_lines(document.text)
        match arguments.operation:
            case "outline":
                result = await server.request("textDocument/documentSymbol", about, _ANSWER_SECONDS)
                answer_lines = [*format_outline(result)]
            case "symbols":
                query = {"query": arguments.symbol}
                result = await server.request("workspace/symbol", query, _ANSWER_SECONDS)
                answer_lines = format_symbols(result, self._name_path)
            case "diagnostics":
                listed = await server.find_diagnostics(path, _ANSWER_SECONDS)
                if listed is None:
                    raise ServerFault(
                        f"{server.config.name} said nothing of it in {_ANSWER_SECONDS:g} s"
                    )
                answer_lines = format_diagnostics(
                    self._name_path(path), listed, lines, server.encoding
                ) or ["No diagnostics."]
            case _:
                spot = _find_spot(arguments, lines)
                if isinstance(spot, ToolOutcome):
                    return spot
                where = {**about, "position": to_position(lines, spot, server.encoding)}
                if arguments.operation == "references":
                    where["context"] = {"includeDeclaration": True}
                method = _METHODS[arguments.operation]
                result = await server.request(method, where, _ANSWER_SECONDS)
                if arguments.operation == "hover":
                    answer_lines = [format_hover(result)]
                else:
                    answer_lines = await asyncio.to_thread(
                        format_places,
                        *(list_places(result), self._read_code, self._name_path, server.encoding),
                    )
        answer = "\n".join(filter(None, answer_lines))
        return ToolOutcome.from_text(answer or "The language server knows nothing about it.")

    async def _read_outline(self, path: str) -> str:
        """Return the outline of a file by its grammar; raises OSError and OutlineError."""
        await asyncio.to_thread(_read_file, path)  # one that can be read, and is not too large
        return await read_outline(path, self._prepare_program) or "No symbols."

    def _prepare_program(self, words: Sequence[str]) -> tuple[Sequence[str], Mapping[str, str]]:
        """Return the words and the variables that start a program, inside the sandbox."""
        variables = build_child_variables(self._environ, self._rules)
        return (words, variables) if self._sandbox is None else self._sandbox.wrap(words, variables)

    def _name_path(self, path: str) -> str:
        """Return a path relative to the folder of the session, where it is inside."""
        return path.removeprefix(f"{self._folder.rstrip('/')}/")

    def _read_code(self, path: str) -> str | None:
        """Return the text of a file that a server named; None for one that no server takes.

        None for one that a rule denies to read, too.
        """
        if not any(config.find_language(path) for config in self._configs):
            return None  # a server may name any file
        if self._find_denied is not None and self._find_denied(path):
            return None
        try:
            return _read_file(path)
        except OSError:
            return None

    # --- what a change did ----------------------------------------------------------------------

    async def begin_call(self, call: ToolCall, context: ToolContext) -> None:
        """Let servers know the files that a call will change, as they are before."""
        for path, server in await self._find_changed(call, context):
            if server.error or path in server.documents:
                continue
            task = asyncio.create_task(_show_file(path, server))
            task.add_done_callback(self._beginning.discard)
            self._beginning.add(task)
            await asyncio.wait([task], timeout=_BEGIN_SECONDS)

    async def end_call(
        self, call: ToolCall, result: ToolOutcome, context: ToolContext
    ) -> ToolOutcome:
        """Return the result with what is newly wrong in the files that the call changed."""
        notes = self._take_late()
        if not result.is_error:
            for path, server in await self._find_changed(call, context):
                if note := await self._look_at_change(path, server):
                    notes.append(note)
        if not notes:
            return result
        return replace(result, content=(*result.content, *(Text(f"\n\n{note}") for note in notes)))

    async def _find_changed(
        self, call: ToolCall, context: ToolContext
    ) -> list[tuple[str, LanguageServer]]:
        """Return the files that a call changes and that a server takes."""
        changed: dict[str, LanguageServer] = {}
        for file_call in parse_file_calls(call):
            if isinstance(file_call.work, FileRead):
                continue
            path = await context.env.real_path(context.env.resolve(file_call.path))
            if (server := self._find_server(path)) is not None:
                changed[path] = server
        return list(changed.items())

    async def _look_at_change(self, path: str, server: LanguageServer) -> str:
        """Return what is newly wrong in a file; what is not known so soon, to a later call."""
        task = asyncio.create_task(self._find_news(path, server))
        await asyncio.wait([task], timeout=_EDIT_SECONDS)
        if task.done():
            return task.result()
        if (older := self._late.pop(path, None)) is not None:
            older.cancel()
        self._late[path] = task
        return ""

    async def _find_news(self, path: str, server: LanguageServer) -> str:
        known = server.documents.get(path)
        before = known.diagnostics if known is not None else None
        try:
            text = await asyncio.to_thread(_read_file, path)
            await server.show(path, text)
            after = await server.find_diagnostics(path, _LATE_SECONDS)
        except (OSError, ServerFault):  # a failed server is named by `offer`
            return ""
        return "" if after is None else self._describe_news(path, server, before, after, text)

    def _describe_news(
        self,
        path: str,
        server: LanguageServer,
        before: Sequence[Diagnostic] | None,
        after: Sequence[Diagnostic],
        text: str,
    ) -> str:
        news = select_new(before, after)
        if not news:
            return ""
        name = self._name_path(path)
        head = f"New diagnostics in {name}" if before is not None else f"Errors in {name}"
        lines = format_diagnostics(name, news, split_lines(text), server.encoding)
        return "\n".join([f"{head} ({server.config.name}):", *lines])

    def _take_late(self) -> list[str]:
        done = [path for path, task in self._late.items() if task.done()]
        return [note for path in done if (note := self._late.pop(path).result())]

    def _find_server(self, path: str) -> LanguageServer | None:
        """Return the server of a file, not started yet where it was not used."""
        config = next((each for each in self._configs if each.find_language(path)), None)
        if config is None:
            return None
        if config.name not in self._servers:
            words, variables = self._prepare_program(config.command)
            self._servers[config.name] = LanguageServer(config, self._folder, words, variables)
        return self._servers[config.name]


def _find_spot(arguments: LspArguments, lines: list[str]) -> Spot | ToolOutcome:
    """Return where the symbol of a call stands; else why that is not known."""
    if not arguments.symbol:
        return ToolOutcome.error(
            f"{arguments.operation} needs a symbol, and better its line, too.",
            kind="ValidationError",
        )
    spot = find_symbol(lines, arguments.symbol, arguments.line)
    if spot is not None:
        return spot
    where = f"line {arguments.line}" if arguments.line else "the file"
    return ToolOutcome.error(
        f"{arguments.symbol} does not stand in {where}.", kind="ValidationError"
    )


def _read_file(path: str) -> str:
    """Return the text of a file; raises OSError, also for one that is too large or no file."""
    file = Path(path)
    status = file.stat()
    if not S_ISREG(status.st_mode):
        raise OSError(f"{path} is not a regular file")
    if status.st_size > _MAX_FILE_BYTES:
        raise OSError(f"{path} is larger than {_MAX_FILE_BYTES >> 20} MB")
    return file.read_bytes().decode("utf-8", "replace")


async def _show_file(path: str, server: LanguageServer) -> None:
    """Let a server know a file and say what is wrong in it; one that fails is named by `offer`."""
    with suppress(OSError, ServerFault):
        await server.show(path, await asyncio.to_thread(_read_file, path))
        await server.find_diagnostics(path, _LATE_SECONDS)
