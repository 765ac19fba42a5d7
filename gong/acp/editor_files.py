"""Files as an editor has them: changes that are not saved yet are read, writes go through it.

The disk decides whenever the two cannot be the same file: a file that is no text, or too large,
is read from the disk; and what the editor does not write as it was given is written to the disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acp import RequestError

from ..env.local import LocalEnvironment

if TYPE_CHECKING:
    from acp.interfaces import Client

_MAX_BYTES = 1 << 20


class EditorFiles:
    """What one editor offers to one session."""

    def __init__(self, client: Client, *, reads: bool, writes: bool) -> None:
        self.session = ""
        """The session's id; nothing is asked before it is known."""
        self._client, self._reads, self._writes = client, reads, writes

    def build_environment(self, *arguments: Any, **options: Any) -> LocalEnvironment:
        """Return an environment of these files, made as `LocalEnvironment` is."""
        environment = EditorEnvironment(*arguments, **options)
        environment.files = self
        return environment

    async def read(self, path: str) -> str | None:
        """Return a file as the editor shows it; None where it does not say."""
        if not self._reads or not self.session:
            return None
        try:
            answer = await self._client.read_text_file(session_id=self.session, path=path)
        except (RequestError, ConnectionError):
            return None
        return answer.content

    async def write(self, path: str, text: str) -> bool:
        """Return whether the editor has taken a file's new text."""
        if not self._writes or not self.session:
            return False
        try:
            await self._client.write_text_file(session_id=self.session, path=path, content=text)
        except (RequestError, ConnectionError):
            return False
        return True


class EditorEnvironment(LocalEnvironment):
    """The local machine, with the files of an editor."""

    files: EditorFiles

    async def read_file(self, path: str, root: str | None = None) -> bytes:
        """Return the bytes of a file, with what its editor has not saved yet."""
        data = await super().read_file(path, root)
        saved = _read_text(data)
        editor_text = (
            await self.files.read(self.resolve(path, exact=True)) if saved is not None else None
        )
        if editor_text is None or _join_lines(editor_text) == _join_lines(saved or ""):
            return data  # as it is on the disk, with its own line ends
        return editor_text.encode()

    async def write_file(self, path: str, data: bytes, root: str | None = None) -> None:
        """Write a file through its editor; what it does not write so goes to the disk."""
        text = _read_text(data)
        place = self.resolve(path, exact=True)
        if self.sandbox is not None:
            self.require_writable(place)
        if text is not None and await self.files.write(place, text):
            try:
                if await super().read_file(path, root) == data:
                    return
            except OSError:
                pass  # it was not written
        await super().write_file(path, data, root)


def _read_text(data: bytes) -> str | None:
    """Return a file's text; None for one that an editor is not asked about."""
    if len(data) > _MAX_BYTES:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _join_lines(text: str) -> str:
    """Return a text as editors hold it: plain line ends, no mark of its encoding."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
