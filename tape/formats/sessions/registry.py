"""The agents whose sessions can be read: what `tape import --from` and `claude:UUID` name; pure.

| tool     | file                                                        | branches | sub-agents |
|----------|-------------------------------------------------------------|----------|------------|
| claude   | `~/.claude/projects/FOLDER/UUID.jsonl`                      | yes      | yes        |
| codex    | `~/.codex/sessions/Y/M/D/rollout-*.jsonl`, also `.zst`      | rollback | –          |
| pi       | `~/.pi/agent/sessions/FOLDER/*.jsonl`, versions 1 to 3      | yes      | –          |
| gemini   | `~/.gemini/tmp/PROJECT/chats/*.json`, `.jsonl`              | –        | –          |
| opencode | `opencode export`, `~/.local/share/opencode/opencode.db`    | revert   | yes        |
| copilot  | `~/.copilot/session-state/ID/events.jsonl`                  | –        | –          |
| amp      | `~/.local/share/amp/threads/T-ID.json`                      | –        | –          |
| goose    | `~/.local/share/goose/sessions/*.jsonl`, or `sessions.db`   | –        | –          |
| antigravity | `~/.gemini/antigravity-cli/brain/ID/…/transcript.jsonl`  | rewind   | yes        |
| cursor   | `~/.cursor/chats/MD5/UUID/store.db`                         | –        | –          |
| grok     | `~/.grok/sessions/CWD/UUID/updates.jsonl` and others        | rewind   | yes        |
| hermes   | `~/.hermes/state.db`, `hermes sessions export`              | rewind   | yes        |
| qwen     | `~/.qwen/projects/FOLDER/chats/UUID.jsonl`                  | rewind   | –          |
| kimi     | `~/.kimi/sessions/MD5/UUID/context.jsonl`                   | revert   | –          |
| vibe     | `~/.vibe/logs/session/NAME/messages.jsonl`                  | –        | –          |
| llm      | `~/.config/io.datasette.llm/logs.db`                        | yes      | –          |
| aider    | `.aider.chat.history.md`                                    | –        | –          |
| atif     | a trajectory of Harbor                                      | –        | yes        |
| simple   | a session in txcript's Simple format                        | –        | –          |
| otlp     | spans of OpenTelemetry with the conventions for GenAI       | –        | –          |
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from . import (
    aider,
    amp,
    antigravity,
    claude,
    codex,
    copilot,
    cursor,
    documents,
    gemini_cli,
    goose,
    grok,
    hermes,
    kimi,
    llm_logs,
    opencode,
    otlp,
    pi,
    qwen,
    vibe,
)
from .steps import decode_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..wire import WireObject
    from .steps import SourceSession

    ReadLines = Callable[[], Iterable[bytes]]
    """Gives the lines of a file from its beginning, each time it is called."""


class SessionFormat(NamedTuple):
    """The sessions of one agent."""

    tool: str
    title: str
    """Name of the agent, for people."""
    is_line: Callable[[WireObject], bool]
    """Returns whether an object is a line (or the whole document) of a session."""
    read: Callable[[ReadLines, str], SourceSession]
    """Reads a session; the second argument is the file's name without its ending."""


SESSION_FORMATS = {
    one.tool: one
    for one in (
        # Before Claude Code, whose lines have the same fields and others.
        SessionFormat("qwen", "Qwen Code", qwen.is_qwen_line, qwen.read_session),
        SessionFormat("claude", "Claude Code", claude.is_claude_line, claude.read_session),
        SessionFormat("codex", "Codex", codex.is_codex_line, codex.read_session),
        SessionFormat("pi", "pi", pi.is_pi_line, pi.read_session),
        SessionFormat("gemini", "Gemini CLI", gemini_cli.is_gemini_line, gemini_cli.read_session),
        SessionFormat("opencode", "OpenCode", opencode.is_opencode_line, opencode.read_session),
        SessionFormat("copilot", "Copilot CLI", copilot.is_copilot_line, copilot.read_session),
        SessionFormat("amp", "Amp", amp.is_amp_line, amp.read_session),
        SessionFormat("goose", "Goose", goose.is_goose_line, goose.read_session),
        SessionFormat(
            "antigravity",
            "Antigravity CLI",
            antigravity.is_antigravity_line,
            antigravity.read_session,
        ),
        SessionFormat("cursor", "Cursor CLI", cursor.is_cursor_line, cursor.read_session),
        SessionFormat("grok", "Grok Build", grok.is_grok_line, grok.read_session),
        SessionFormat("hermes", "Hermes", hermes.is_hermes_line, hermes.read_session),
        SessionFormat("kimi", "Kimi CLI", kimi.is_kimi_line, kimi.read_session),
        SessionFormat("vibe", "Mistral Vibe", vibe.is_vibe_line, vibe.read_session),
        SessionFormat("llm", "llm", llm_logs.is_llm_line, llm_logs.read_session),
        SessionFormat("aider", "aider", aider.is_aider_line, aider.read_session),
        SessionFormat("atif", "ATIF", documents.is_atif_line, documents.read_atif),
        SessionFormat("simple", "Simple", documents.is_simple_line, documents.read_simple),
        SessionFormat("otlp", "OTLP", otlp.is_otlp_line, otlp.read_session),
    )
}
"""Every agent by the name that stands before the colon of a reference."""
_LOOKED_AT = 25
"""Lines that are looked at to find out whose file it is."""


def detect_tool(read_lines: ReadLines) -> str | None:
    """Return the agent whose session a file is; None if it is none that is known."""
    objects = [value for line in islice(read_lines(), _LOOKED_AT) if (value := decode_object(line))]
    if not objects:  # one document over many lines
        whole = decode_object(b"\n".join(read_lines()))
        objects = [whole] if whole else []
    for value in objects:
        for tool, form in SESSION_FORMATS.items():
            if form.is_line(value):
                return tool
    return None
