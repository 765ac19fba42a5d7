"""The list of /resume: sessions of this project or of all, to look into, rename and remove.

Each function opens the store for itself, so that it can be called in any thread.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from tape.model.entries import Assistant, Text, User, join_texts
from tape.model.line import decode_line, describe_blob_head, read_type
from tape.places.checkout import find_checkout
from tape.remote.opening import open_store
from tape.text import SHORT, format_count, shorten_to_width, to_single_line

from ...env.wrappers import find_folder_here
from ..draw.lines import StyledLine
from ..draw.picker import Picker
from .session_lists import list_sessions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tape.model.entries import Content
    from tape.store.tape import Tape

    from ...assembly.open_session import OpenSession

_PREVIEW_PROMPTS = 3
_PREVIEW_ENTRIES = 400
"""How far back, in entries, prompts are looked for."""
_PREVIEW_CHARS = 2_000
_TITLE_COLUMNS = 40


def build_session_picker(host: OpenSession) -> Picker:
    """Return the list of the sessions of this repository, and behind it those of all folders."""
    home = host.library.store.tapes.parent
    here = find_checkout(find_folder_here(host.session.setup.env), host.models.environ)
    return Picker(
        "resume",
        partial(list_sessions, home, here, only_here=True),
        {"enter": ("continues it", "/resume {}")},
        find_everywhere=partial(list_sessions, home, here),
        preview=partial(preview_session, home),
        rename=partial(_rename_session, home),
        remove=partial(_remove_session, home),
    )


def preview_session(home: Path, tape_id: str) -> list[StyledLine]:
    """Return the last prompts of a session's current branch, and the newest answer.

    The newest prompt stands before the answer, older ones before it in a line each. Raises
    TapeError or OSError.
    """
    with open_store(home) as (store, _), store.open(tape_id) as tape:
        prompts, answer = _read_last_words(tape)
        branches = len(tape.refs().branches)
    about = f"{tape.id[:SHORT]} · {format_count(branches, 'branch', 'branches')}"
    lines = [StyledLine(about, "result")]
    lines += [StyledLine(f"> {to_single_line(prompt)}", "you") for prompt in reversed(prompts)]
    lines += [StyledLine(line) for line in answer[:_PREVIEW_CHARS].split("\n") if line.strip()]
    return lines if prompts else [*lines, StyledLine("(no prompt yet)", "result")]


def _read_last_words(tape: Tape) -> tuple[list[str], str]:
    """Return the newest prompts, newest first, and the newest answer, "" if there is none."""
    prompts, answer = list[str](), ""
    for line in islice(_iter_lines_back(tape), _PREVIEW_ENTRIES):
        kind = read_type(line)
        if kind == User.entry_type:
            prompts.append(_read_text(line)[:_PREVIEW_CHARS])
            if len(prompts) == _PREVIEW_PROMPTS:
                break
        elif kind == Assistant.entry_type and not answer and not prompts:
            answer = _read_text(line)
    return prompts, answer


def _iter_lines_back(tape: Tape) -> Iterator[bytes]:
    for segment in tape.walk_path_back(tape.head(tape.refs().current)):
        for _, line in segment.read_checked_lines_back(lambda _: None):
            yield line


def _read_text(line: bytes) -> str:
    data = decode_line(line, describe_blob_head).data
    content: Content = data.content if isinstance(data, (User, Assistant)) else ()
    return join_texts(tuple(block for block in content if isinstance(block, Text)))


def _rename_session(home: Path, tape_id: str, title: str) -> str:
    with open_store(home) as (store, _), store.open(tape_id) as tape:
        tape.rename(title)
    return f"title: {title}"


def _remove_session(home: Path, tape_id: str) -> str:
    with open_store(home) as (store, _), store.open(tape_id) as tape:
        title = shorten_to_width(tape.title() or tape_id, _TITLE_COLUMNS)
        store.remove(tape)
    return f'"{title}" is in the trash; /tape restore {tape_id} brings it back'
