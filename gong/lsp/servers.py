"""Which language servers there are: those of the settings, and known ones on the PATH.

Nothing is downloaded and nothing started here. The first server that takes a file is the file's.
"""

from __future__ import annotations

import shutil
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from ..errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..config import LspSettings

_PYTHON = {"*.py": "python", "*.pyi": "python"}
_SCRIPTS = {
    "*.ts": "typescript",
    "*.mts": "typescript",
    "*.cts": "typescript",
    "*.tsx": "typescriptreact",
    "*.js": "javascript",
    "*.mjs": "javascript",
    "*.cjs": "javascript",
    "*.jsx": "javascriptreact",
}
_C = {
    **dict.fromkeys(("*.c", "*.h"), "c"),
    **dict.fromkeys(("*.cc", "*.cpp", "*.cxx", "*.hh", "*.hpp"), "cpp"),
}


class LanguageServerConfig(NamedTuple):
    """A language server, and the files that it takes."""

    name: str
    command: tuple[str, ...]
    """The program and its arguments."""
    languages: Mapping[str, str]
    """Patterns of file names, and the language of such files as the protocol names it."""
    options: object = None
    """Its `initializationOptions`."""
    settings: object = None
    """What it gets when it asks for its configuration."""

    def find_language(self, path: str) -> str | None:
        """Return the language of a file; None for a file that it does not take."""
        name = path.rpartition("/")[2]
        return next(
            (
                language
                for pattern, language in self.languages.items()
                if fnmatchcase(name, pattern)
            ),
            None,
        )


KNOWN_SERVERS = (
    LanguageServerConfig("basedpyright", ("basedpyright-langserver", "--stdio"), _PYTHON),
    LanguageServerConfig("pyright", ("pyright-langserver", "--stdio"), _PYTHON),
    # The preview of TypeScript 7, often beside a `tsc` of an older one, which is no server.
    LanguageServerConfig("tsgo", ("tsgo", "--lsp", "--stdio"), _SCRIPTS),
    LanguageServerConfig("tsc", ("tsc", "--lsp", "--stdio"), _SCRIPTS),
    LanguageServerConfig("gopls", ("gopls",), {"*.go": "go", "go.mod": "go.mod"}),
    LanguageServerConfig("rust-analyzer", ("rust-analyzer",), {"*.rs": "rust"}),
    LanguageServerConfig("clangd", ("clangd",), _C),
)
"""Servers that are used where their program is there; earlier ones come first."""


def find_servers(
    settings: LspSettings, environ: Mapping[str, str], *, discovers: bool = False
) -> tuple[LanguageServerConfig, ...]:
    """Return the servers that can be used, those of the settings first.

    With `discovers` known ones on the PATH are among them. Raises ConfigurationError for a server
    without a command or files.
    """
    if not settings.enabled:
        return ()
    configured = tuple(_read_configured(settings))
    if not discovers:
        return configured
    path = environ.get("PATH")
    known = (
        server
        for server in KNOWN_SERVERS
        if server.name not in settings.servers and shutil.which(server.command[0], path=path)
    )
    return (*configured, *known)


def _read_configured(settings: LspSettings) -> Iterator[LanguageServerConfig]:
    known = {server.name: server for server in KNOWN_SERVERS}
    for name, table in settings.servers.items():
        if not table.enabled:
            continue
        usual = known.get(name)
        command = table.command or (usual.command if usual else ())
        languages = table.files or (usual.languages if usual else {})
        if not command or not languages:
            raise ConfigurationError(
                f'lsp.servers.{name}: give its command, as ["program", "--stdio"], and its files, '
                f'as {{"*.py" = "python"}}'
            )
        yield LanguageServerConfig(
            name, tuple(command), languages, table.options or None, table.settings or None
        )
