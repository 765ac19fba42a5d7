"""Reviews during a session: a hook that reviews what changed after every few answers (M186).

An answer counts when the agent has nothing left to do. What the review finds, and did not find
before, the agent gets, and continues with it; it is asked for no more than once each.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..errors import ConfigurationError
from ..hooks import Block
from .analysers import find_with_analysers
from .diff import read_changes
from .findings import format_text
from .memory import open_memory
from .review import choose_findings, find_all_faults, select_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..config import Settings
    from .analysers import OpenSandbox


class AutomaticReview:
    """The hook of one session."""

    timeout = 60.0

    def __init__(self, settings: Settings, folder: str, environ: Mapping[str, str]) -> None:
        """Take the settings; `every` of those for reviews is at least 1."""
        self._settings, self._folder, self._environ = settings.review, folder, environ
        self._open_sandbox: OpenSandbox | None = None
        if settings.border.mode != "off":
            from ..assembly.border import build_opener  # only with a sandbox

            self._open_sandbox = build_opener(settings, environ)
        self._answers = 0
        self._reported: set[str] = set()
        """What was found before: the ids of findings, with the text of their lines."""

    async def on_stop(self, text: str) -> Block | None:
        """Review what changed, and give the agent what is new."""
        del text
        self._answers += 1
        if self._answers % self._settings.every:
            return None
        try:
            changes = await read_changes(self._folder, self._environ)
        except ConfigurationError:  # no repository, or no commit
            return None
        files = select_files(changes.files, self._settings.ignore)
        memory = open_memory(changes.root, self._environ)
        analysed = await asyncio.to_thread(
            find_with_analysers, files, self._environ, memory, self._open_sandbox
        )
        findings = choose_findings(
            [*find_all_faults(files, self._settings.rules), *analysed.found],
            files,
            strictness=self._settings.strictness,
        )
        by_path = {file.path: file for file in files}
        new = []
        for finding in findings:
            line = by_path[finding.file].get_line(finding.lines[0])
            key = f"{finding.file}\0{finding.category}\0{line}"
            if key not in self._reported:
                self._reported.add(key)
                new.append(finding)
        if not new:
            return None
        listed = "\n".join(format_text(new))
        return Block(
            f"A review of the changes found:\n{listed}\nFix what is wrong, or say why it is not."
        )
