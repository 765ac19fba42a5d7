"""Commands and how dangerous they are, in a module for each subject; strings, never run.

The folder is /home/ada/project, the home /home/ada.
"""

from __future__ import annotations

from tests.gong.policy.cases import (
    builds,
    databases,
    editors,
    expansions,
    files,
    finding,
    git,
    languages,
    network,
    removal,
    system,
    wrappers,
)

_SUBJECTS = (
    builds,
    databases,
    editors,
    expansions,
    files,
    finding,
    git,
    languages,
    network,
    removal,
    system,
    wrappers,
)
SAFE = [command for subject in _SUBJECTS for command in subject.SAFE]
"""Commands that only read, and only what may be read."""
ASK = [command for subject in _SUBJECTS for command in subject.ASK]
"""Commands that may change something, talk to other machines, or run what the project contains."""
DANGEROUS = [command for subject in _SUBJECTS for command in subject.DANGEROUS]
"""Commands whose damage is irreversible."""
