"""The other agents whose sessions we read and write: one row each, and all that is known of them.

Lists, help, REFs, searches for files and the tables of the docs come from these rows. Modules are
named, and imported when they are used (`loading`), so that a command which only reads a REF costs
nothing more. An agent is added with its row and the module that reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class SessionWriter(NamedTuple):
    """How `tape export --to` writes the sessions of one agent."""

    module: str
    """Module in this room with `write_session`; and `build_file_name` if they are installed."""
    holds_branches: bool = False
    """Whether a file holds all branches of a tape, or one."""
    is_installed: bool = False
    """Whether the agent looks for files in its folder; if not, a file is a document by itself."""
    resume: str = ""
    """What continues in a shell what was written: `{session}` is its id there, `{file}` the file
    where none is installed. "" where nothing does."""


class SessionFormat(NamedTuple):
    """The sessions of one agent."""

    tool: str
    """The agent, in `--from`, `--to`, and before the colon of a REF."""
    title: str
    """Name of the agent, for people."""
    reader: str
    """Module in this room with `is_session_line`, `read_session`; `DATABASE` if a file is one."""
    folders: tuple[str, ...] = ()
    """Where sessions are kept: the first one whose variable is set, `~` is home."""
    files: tuple[str, ...] = ()
    """Patterns of files in that folder; with a fixed name the last `*` is the session's id."""
    beside: tuple[str, ...] = ()
    """Patterns of files beside one of a fixed name, read before it."""
    around: tuple[str, ...] = ()
    """JSON documents, as paths from the folder of a file of a fixed name: `describe_session` of the
    reader makes a first line of them."""
    many: str = ""
    """Name of a file of text that holds many sessions, wherever it is: `list_sessions` and
    `select_session` of the reader split it."""
    is_folder: bool = False
    """Whether a session is a folder: the first of `files` that is there stands for all below it."""
    extends: str = ""
    """The agent whose lines have the same fields, without those that tell this one from it."""
    writer: SessionWriter | None = None
    branches: str = "–"
    """What becomes a branch, for people."""
    sub_agents: str = "–"
    """What becomes of sub-agents, for people."""
    note: str = ""
    """What else is to be known of the files, for people."""

    def find_folder(self, environ: Mapping[str, str], home: str) -> str | None:
        """Return where the sessions are kept, whether it is there or not; None if nowhere."""
        for folder in self.folders:
            first, slash, rest = folder.partition("/")
            place = home if first == "~" else environ.get(first.removeprefix("$"))
            if place:
                return f"{place}{slash}{rest}"
        return None


_ROWS = (
    SessionFormat(
        "claude",
        "Claude Code",
        "claude",
        folders=("$CLAUDE_CONFIG_DIR", "~/.claude"),
        files=("projects/*/*.jsonl", "projects/*/*/subagents/*.jsonl"),
        writer=SessionWriter(
            "write_claude",
            holds_branches=True,
            is_installed=True,
            resume="claude --resume {session}",
        ),
        branches="yes",
        sub_agents="tapes of their own",
    ),
    SessionFormat(
        "codex",
        "Codex",
        "codex",
        folders=("$CODEX_HOME", "~/.codex"),
        files=("sessions/**/rollout-*.jsonl*", "archived_sessions/rollout-*.jsonl*"),
        writer=SessionWriter("write_codex", is_installed=True, resume="codex resume {session}"),
        branches="after a rollback",
        note="also `.zst`",
    ),
    SessionFormat(
        "pi",
        "pi",
        "pi",
        folders=("~/.pi/agent",),
        files=("sessions/*/*.jsonl",),
        writer=SessionWriter(
            "write_pi",
            holds_branches=True,
            is_installed=True,
            resume="pi --session {session}",
        ),
        branches="yes",
        note="versions 1 to 3",
    ),
    SessionFormat(
        "gemini",
        "Gemini CLI",
        "gemini_cli",
        folders=("~/.gemini",),
        files=("tmp/*/chats/*.json", "tmp/*/chats/*.jsonl"),
        branches="after a rewind",
    ),
    SessionFormat(
        "opencode",
        "OpenCode",
        "opencode",
        folders=("$XDG_DATA_HOME/opencode", "~/.local/share/opencode"),
        files=("opencode.db",),
        writer=SessionWriter(
            "write_opencode", resume="opencode import {file} && opencode --session {session}"
        ),
        branches="after a revert",
        sub_agents="linked",
        note="or a file of `opencode export`",
    ),
    SessionFormat(
        "copilot",
        "Copilot CLI",
        "copilot",
        folders=("$COPILOT_HOME", "~/.copilot"),
        files=("session-state/*/events.jsonl",),
        sub_agents="kept whole in the session",
    ),
    SessionFormat(
        "amp",
        "Amp",
        "amp",
        folders=("$XDG_DATA_HOME/amp", "~/.local/share/amp"),
        files=("threads/T-*.json",),
        note="which newer versions do not write",
    ),
    SessionFormat(
        "goose",
        "Goose",
        "goose",
        folders=("$GOOSE_PATH_ROOT/data", "$XDG_DATA_HOME/goose", "~/.local/share/goose"),
        files=("sessions/*.jsonl", "sessions/sessions.db"),
    ),
    SessionFormat(
        "antigravity",
        "Antigravity CLI",
        "antigravity",
        folders=("~/.gemini/antigravity-cli",),
        files=("brain/*/.system_generated/logs/transcript.jsonl",),
        branches="after a rewind",
        sub_agents="linked",
    ),
    SessionFormat(
        "cursor",
        "Cursor CLI",
        "cursor",
        folders=("$CURSOR_CONFIG_DIR", "~/.cursor"),
        files=("chats/*/*/store.db",),
    ),
    SessionFormat(
        "grok",
        "Grok Build",
        "grok",
        folders=("$GROK_HOME", "~/.grok"),
        files=("sessions/*/*/updates.jsonl", "sessions/*/*/chat_history.jsonl"),
        beside=("summary.json", "compaction_checkpoints/*.json", "chat_history.jsonl"),
        is_folder=True,
        branches="after a rewind",
        sub_agents="linked",
    ),
    SessionFormat(
        "hermes",
        "Hermes",
        "hermes",
        folders=("$HERMES_HOME", "~/.hermes"),
        files=("state.db", "profiles/*/state.db"),
        branches="after a rewind",
        sub_agents="linked",
        note="or a file of `hermes sessions export`",
    ),
    SessionFormat(
        "qwen",
        "Qwen Code",
        "qwen",
        folders=("$QWEN_RUNTIME_DIR", "$QWEN_HOME", "~/.qwen"),
        files=("projects/*/chats/*.jsonl", "tmp/*/chats/*.jsonl"),
        extends="claude",
        branches="after a rewind",
    ),
    SessionFormat(
        "kimi",
        "Kimi CLI",
        "kimi",
        folders=("$KIMI_SHARE_DIR", "~/.kimi"),
        files=("sessions/*/*/context.jsonl",),
        beside=("context_[0-9]*.jsonl",),
        around=("state.json", "../../../kimi.json"),
        branches="after a revert",
    ),
    SessionFormat(
        "vibe",
        "Mistral Vibe",
        "vibe",
        folders=("$VIBE_HOME", "~/.vibe"),
        files=("logs/session/*/messages.jsonl",),
        beside=("meta.json",),
    ),
    SessionFormat(
        "llm",
        "llm",
        "llm_logs",
        folders=("$LLM_USER_PATH", "~/.config/io.datasette.llm"),
        files=("logs.db",),
        branches="a thread that went two ways",
        note="of all versions",
    ),
    SessionFormat(
        "aider",
        "aider",
        "aider",
        many=".aider.chat.history.md",
        note="`.aider.chat.history.md` of a project, by its path: each chat is a session,"
        " edits are part of its text",
    ),
    SessionFormat(
        "atif",
        "ATIF",
        "atif",
        writer=SessionWriter("write_atif"),
        sub_agents="tapes of their own",
        note="any file: a trajectory of Harbor",
    ),
    SessionFormat(
        "simple",
        "Simple",
        "simple",
        writer=SessionWriter("write_simple"),
        note="any file: a session of txcript",
    ),
    SessionFormat(
        "otlp",
        "OTLP",
        "otlp",
        writer=SessionWriter("write_otlp"),
        note="any file: spans of OpenTelemetry with the conventions for GenAI",
    ),
)

SESSION_FORMATS = {row.tool: row for row in _ROWS}
"""Every agent by the name that stands before the colon of a reference."""
