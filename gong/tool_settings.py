"""Settings of tools as values.

The configuration has them as tables of config.toml; the tools and `tools.truncation` obey them.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from msgspec import Struct, field

from .setting_values import MAX_TIMEOUT_MS, Amount, PositiveCount, Timeout

OutputForm = Literal["merged", "split"]
"""How bash returns standard output and error: as they came, or each by itself."""
Direction = Literal["head", "tail"]
"""Which end of a text is kept."""
StrategyName = Literal["lines_and_bytes", "lines", "bytes", "json_items"]
"""What is counted where a result is cut, see `truncation.STRATEGIES`."""

MAX_LINES = 2000
MAX_BYTES = 51_200
RETENTION_DAYS = 7.0
"""Age in days at which saved files are deleted, if they are not on a tape."""


class OutputCaps(NamedTuple):
    """Where a tool cuts its own text; None is no limit of lines."""

    max_lines: int | None = MAX_LINES
    max_bytes: int = MAX_BYTES


class TruncationOverride(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of one tool; None is the setting for all tools."""

    max_lines: PositiveCount | None = None
    max_bytes: PositiveCount | None = None
    direction: Direction | None = None
    enabled: bool | None = None
    strategy: StrategyName | None = None


class TruncationSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How results are cut; all is set."""

    max_lines: PositiveCount = MAX_LINES
    """Lines of a result that is not cut."""
    max_bytes: PositiveCount = MAX_BYTES
    """Bytes of a result that is not cut."""
    direction: Direction = "head"
    """Which part of a longer result is kept."""
    enabled: bool = True
    """Whether results are cut."""
    retention_days: Amount = RETENTION_DAYS
    """Age in days at which saved files are deleted, if they are not on a tape."""
    storage_dir: str | None = None
    """Folder of saved files without a tape; None is one among temporary files."""
    strategy: StrategyName = "lines_and_bytes"
    """What is counted: lines and bytes, one of them, or the items of a JSON array."""
    tools: dict[str, TruncationOverride] = field(default_factory=dict)
    """Settings of single tools, by name."""


class SearchSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The table [web.search]: who searches the web for models; nobody where nothing is set."""

    native: bool = False
    """Whether the provider searches where it can: it costs what the provider charges for it."""
    url: str = ""
    """Address of a search service that answers in JSON; {query} is what to look for."""
    headers: dict[str, str] = field(default_factory=dict)
    """Headers for it; $NAME is a variable of the environment."""
    body: dict[str, Any] = field(default_factory=dict)
    """JSON that is posted to it instead of a GET; {query} in its texts is what to look for."""
    command: tuple[str, ...] = ()
    """A command that prints results as JSON, or as text; {query} is what to look for."""


class WebSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The table [web]: what is fetched from the web; see docs/web.md."""

    fetch: bool = True
    """Whether models are offered the tool that fetches pages."""
    private_hosts: tuple[str, ...] = ()
    """Hosts, as HOST or HOST:PORT, whose pages may be fetched although they are private."""
    model: str | None = None
    """The model that answers about a page; None is the provider's small one; off is none."""
    search: SearchSettings = SearchSettings()
    """Who searches the web."""


class ToolSettings(Struct, frozen=True):
    """Settings of the built-in tools."""

    command_prefix: str = ""
    """Lines that bash runs before every command."""
    bash_output: OutputForm = "merged"
    """Standard output and error of the tool bash: merged as they came, or split."""
    default_timeout_ms: Timeout | None = None
    """Timeout of a command that sets none; None is the tool's own default."""
    max_timeout_ms: Timeout = MAX_TIMEOUT_MS
    """Maximum timeout of a command, whatever it asks for."""
    output_limits: dict[str, PositiveCount] = field(default_factory=dict)
    """Maximum characters of a result, by tool; bytes for read, bash, grep, find and ls."""
    line_limits: dict[str, PositiveCount] = field(default_factory=dict)
    """Maximum lines of a result, by tool."""
    truncation: TruncationSettings = TruncationSettings()
    """Limits for results that their tool does not cut."""
    web: WebSettings = WebSettings()
    """What is fetched from the web."""
    max_image_size: PositiveCount = 1_000_000
    """Largest picture that a tool returns as it is, in bytes."""

    def caps(self, name: str, *, by_lines: bool = True) -> OutputCaps:
        """Return the limits of a tool's own text; without `by_lines`, lines only if set."""
        own = self.truncation.tools.get(name, TruncationOverride())
        usual = self.truncation.max_lines if by_lines else None
        return OutputCaps(
            self.line_limits.get(name) or own.max_lines or usual,
            self.output_limits.get(name) or own.max_bytes or self.truncation.max_bytes,
        )


DEFAULT_SETTINGS = ToolSettings()
"""The settings where nothing is set."""
LINE_CAPS, NO_LINE_CAPS = OutputCaps(), OutputCaps(None)
"""The usual limits, with one of lines and without."""
