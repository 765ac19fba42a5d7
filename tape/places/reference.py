"""The grammar of a REF, `[TAPE][:BRANCH][@ENTRY | @{N}][~N | ^N]`: text to parts and back; pure.

`TOOL:SESSION` in place of TAPE is the tape that a session of another agent became: its id is made
from both, so nothing is looked up.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from ..errors import UsageError
from ..ids import compute_tape_id

GRAMMAR = "[TAPE][:BRANCH][@ENTRY | @{N}][~N | ^N]"

STORE_TOOLS = ("claude-agent", "langgraph", "openai-agents", "pydantic-ai")
"""SDKs that keep sessions here (`tape.stores`): `openai-agents:ID`."""
_NAME = "[a-z0-9][a-z0-9._-]{0,47}"
_REFERENCE = (
    r"(?P<tape>[^:@~^/\x00-\x1f]+)?"
    rf"(?::(?P<branch>{_NAME}))?"
    rf"(?:@(?:(?P<entry>{_NAME})|\{{(?P<moves_ago>[0-9]{{1,9}})\}}))?"
    r"(?:~(?P<back>[0-9]{0,9})|\^(?P<prompts_back>[0-9]{0,9}))?\Z"
)
MIN_SURE_DIGITS = 4
"""A prefix of fewer digits may as well be a word: whatever has exactly that name comes first."""


class Reference(NamedTuple):
    """What a REF says; a part it leaves out is None."""

    tape: str | None = None
    """Id prefix or folder name of a tape, or a branch of this folder's tape; a bare word may also
    be an entry's id or a label."""
    branch: str | None = None
    entry: str | None = None
    """Id prefix or label of an entry."""
    moves_ago: int | None = None
    """The head of the branch this many ref moves ago."""
    back: int = 0
    """This many entries earlier."""
    prompts_back: int = 0
    """The entry before this newest prompt: 1 is the newest one, 2 the one before it."""

    @property
    def is_bare(self) -> bool:
        """Return whether it is a single word: a tape, an entry, a label or a branch."""
        return self.tape is not None and self[1:4] == (None, None, None)

    @property
    def names_entry(self) -> bool:
        """Return whether it names an entry, rather than a tape or a branch as a whole."""
        return self[2:] != _WHOLE[2:]


_WHOLE = Reference()


@cache
def _build_session_pattern() -> str:
    from ..formats.sessions.registry import SESSION_FORMATS  # few REFs name one

    tools = "|".join((*SESSION_FORMATS, *STORE_TOOLS))
    return rf"(?P<tool>{tools}):(?P<session>[^:@~^\x00-\x1f]+)"


def _match_session(text: str) -> re.Match[str] | None:
    """Return the match of a session's name at the beginning of a REF; None without one."""
    return re.match(_build_session_pattern(), text) if ":" in text else None


def parse_reference(text: str) -> Reference:
    """Return the parts of a REF; raise UsageError with the grammar if it is not a REF."""
    if not text:
        return _WHOLE
    if named := _match_session(text):
        rest = parse_reference(text[named.end() :])
        return rest._replace(tape=compute_tape_id(named["tool"], named["session"]))
    match = re.match(_REFERENCE, text)
    if match is None:
        hint = "; the shell may expand ~ to a folder: quote it, or write :main~N"
        raise UsageError(
            f"{text!r} is not a reference: write {GRAMMAR}{hint if text.startswith('/') else ''}"
        )
    parts = match.groupdict()
    moves_ago = None if parts["moves_ago"] is None else int(parts["moves_ago"])
    back, prompts_back = (
        0 if parts[name] is None else int(parts[name] or 1) for name in ("back", "prompts_back")
    )
    return Reference(parts["tape"], parts["branch"], parts["entry"], moves_ago, back, prompts_back)


def build_session_label(tool: str, session: str) -> str:
    """Return the label of a session whose history is on the tape of another session."""
    name = f"{tool}-{session}"
    is_label = re.fullmatch(_NAME, name) and ".." not in name
    return name if is_label else compute_tape_id(tool, session)


def build_session_branch(tool: str, session: str) -> str:
    """Return how the branches of such a session are called there, before a hyphen and a number."""
    return f"{tool}-{compute_tape_id(tool, session)[:8]}"


class SessionName(NamedTuple):
    """A session of another agent, by the agent's own id."""

    tool: str
    session: str


def find_session_name(text: str) -> SessionName | None:
    """Return the session that a REF names; None if it names none."""
    named = _match_session(text)
    return SessionName(named["tool"], named["session"]) if named else None


def split_range(text: str) -> tuple[str, str] | None:
    """Return the two REFs of `REF..REF2`, either may be empty; None if a text is no such range."""
    if "..." in text:
        raise UsageError(f"{text!r}: three dots are not known: write REF..REF2")
    first, dots, second = text.partition("..")
    return (first, second) if dots else None


def render_reference(reference: Reference) -> str:
    """Return the text that `parse_reference` reads as this reference."""
    tape, branch, entry, moves_ago, back, prompts_back = reference
    return "".join(
        (
            tape or "",
            f":{branch}" if branch else "",
            f"@{entry}" if entry else "",
            f"@{{{moves_ago}}}" if moves_ago is not None else "",
            f"~{back}" if back else "",
            f"^{prompts_back}" if prompts_back else "",
        )
    )
