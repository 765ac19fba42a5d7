"""What /resume, /switch, /rewind and /tree choose from: sessions, branches, prompts.

Each returns rows for what is typed into the list. Sessions are found by the words of their talk and
of their row, in all folders; the others by the words of their row.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tape.clock import format_age, parse_timestamp, read_clock
from tape.errors import TapeError, UsageError
from tape.history.graph import GraphLanes, order_newest_first, read_graph, split_runs
from tape.index.library import list_newest_tapes, query_index, search_entries
from tape.index.reader import select_named_tapes
from tape.index.tape_filter import TapeFilter
from tape.model.entries import User, join_texts
from tape.model.line import decode_line, describe_blob_head, read_id, read_type
from tape.remote.opening import open_store
from tape.store.path import Segment
from tape.text import SHORT, to_single_line

from ...context.costs import format_money
from ..draw.picker_rows import PickerRow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tape.index.library import Library
    from tape.index.reader import TapeRow
    from tape.index.tape_filter import Checkout
    from tape.store.tape import Tape

MAX_SESSIONS = 200
"""Sessions that are listed at once, newest first."""
_MAX_HITS = 400
_FOLDER_CHARS = 24


def list_sessions(
    home: Path, here: Checkout, words: str, *, only_here: bool = False
) -> list[PickerRow]:
    """Return the newest sessions of all folders, or those whose talk has all words; newest first.

    Those of the repository `here` come before the others, in whatever checkout they were;
    `only_here` leaves the others out. The store at `home` is opened for this question, so that it
    can be asked in any thread.
    """
    with open_store(home) as library:
        if words:
            rows = _find_named_tapes(library, words)
        elif only_here:
            rows = list_newest_tapes(*library, MAX_SESSIONS, None, TapeFilter(checkout=here))
        else:
            rows = list_newest_tapes(*library, MAX_SESSIONS, here)
    if only_here:
        rows = [row for row in rows if here.has(row)]
    rows.sort(key=lambda row: not here.has(row))
    return [_build_session_row(row) for row in rows[:MAX_SESSIONS]]


def _find_named_tapes(library: Library, words: str) -> list[TapeRow]:
    """Return the tapes that say these words, or whose row does, newest first."""
    tapes = _find_sessions(library, words)
    return query_index(*library, lambda db: select_named_tapes(db, tapes, words))


def _find_sessions(library: Library, words: str) -> set[str]:
    """Return the tapes with an entry that has all words; the last word may be its beginning."""
    for query in (f"{words}*", words):
        with suppress(UsageError):  # such as an open quotation mark: the other spelling may do
            types = ("user", "assistant")
            hits = search_entries(*library, query, types=types, limit=_MAX_HITS)
            return {hit.tape for hit in hits}
    return set()


def _build_session_row(row: TapeRow) -> PickerRow:
    age = format_age(read_clock() - parse_timestamp(row.updated))
    money = format_money(row.cost) if row.cost else ""
    branches = f" · {row.branches} branches" if row.branches > 1 else ""
    cost = f" · {money}" if money else ""
    folder = _name_folder(row.cwd)
    short = folder if len(folder) <= _FOLDER_CHARS else f"…{folder[1 - _FOLDER_CHARS :]}"
    return PickerRow(
        row.id[:SHORT],
        to_single_line(row.title or "–"),
        f"{short} · {age}{branches}{cost}",
        folder=folder,
        facts=(age, money or "–"),
    )


def _name_folder(folder: str) -> str:
    """Return a path in one line, from the home folder where it is below."""
    home = str(Path.home())
    return to_single_line(
        f"~{folder[len(home) :]}" if f"{folder}/".startswith(f"{home}/") else folder
    )


def list_branches(tape: Tape, current: str, words: str) -> list[PickerRow]:
    """Return the branches whose name or newest prompt has what is typed, newest first."""
    rows = []
    for name in tape.refs().branches:
        with suppress(TapeError, OSError):  # a damaged branch must not hide the others
            head = tape.head(name)
            prompt = next((text for _, text in iter_prompts(tape, name)), "–")
            age = format_age(read_clock() - parse_timestamp(head.header.time))
            mark = "* " if name == current else "  "
            rows.append((head.header.time, PickerRow(name, f"{mark}{name}  {prompt}", age)))
    rows.sort(key=lambda row: row[0], reverse=True)
    return select_rows([row for _, row in rows], words)


def list_prompts(tape: Tape, branch: str, words: str) -> list[PickerRow]:
    """Return the prompts of a branch, newest first, by the ids of their entries."""
    rows = [
        PickerRow(entry[:SHORT], text, f"^{ago}")
        for ago, (entry, text) in enumerate(iter_prompts(tape, branch), 1)
    ]
    return select_rows(rows, words)


def iter_prompts(tape: Tape, branch: str) -> Iterator[tuple[str, str]]:
    """Yield entry id and first line of each prompt of a branch, newest first."""
    for segment in tape.walk_path_back(tape.head(branch)):
        for line in _iter_lines_back(segment):
            if read_type(line) == User.entry_type:
                yield read_id(line), _read_prompt(line)


def list_tree(tape: Tape, current: str, words: str) -> list[PickerRow]:
    """Return the prompts of all branches, newest first, drawn as a tree, or those with the words.

    So are the entries that have labels. A row's value names the entry of the prompt; of the end of
    a branch the branch's name. The end of the branch `current` is marked at first.
    """
    refs = tape.refs()
    labels: dict[str, list[str]] = {}
    for label, entry in refs.labels.items():
        labels.setdefault(entry, []).append(label)
    tree = read_graph(tape)
    names: dict[str, list[str]] = {}
    for head in tree.heads:
        names.setdefault(head.entry, []).append(head.branch)
    runs, lanes = split_runs(tree), GraphLanes()
    rows: list[PickerRow] = []
    for number in order_newest_first(runs):
        run, column = runs[number], lanes.begin(number)
        for line in _iter_lines_back(Segment(run.node.source, run.node.phase, run.end, run.start)):
            entry, is_prompt = read_id(line), read_type(line) == User.entry_type
            ends = names.get(entry, ())
            labelled = "".join(f"({name}) " for name in labels.get(entry, ()))
            if not (is_prompt or ends or labelled):
                continue
            mark = "o" if run.undone else "*"
            drawn = "".join(cell.char for cell in lanes.draw_row(column, mark))
            text = _read_prompt(line) if is_prompt else "(end)" if ends else read_type(line)
            ends_text = ", ".join(f"{name} ←" if name == current else name for name in ends)
            label, is_current = f"[{ends_text}] " if ends else "", current in ends
            value = f"{run.node.source.tape[:SHORT]}@{entry[:SHORT]}"
            if ends:
                value = current if is_current else ends[0]
            text = f"{drawn}{label}{labelled}{text}"
            rows.append(PickerRow(value, text, entry[:SHORT], is_current))
        if run.merged is not None:
            lanes.add_merge_line(column, run.merged)
        lanes.end(column, run.parent)
    return select_rows(rows, words)


def _iter_lines_back(segment: Segment) -> Iterator[bytes]:
    """Yield the lines of a part of a phase, newest first; damaged ones are left out."""
    for _, line in segment.read_checked_lines_back(lambda _: None):
        yield line


def _read_prompt(line: bytes) -> str:
    data = decode_line(line, describe_blob_head).data
    return to_single_line(join_texts(data.content)) if isinstance(data, User) else ""


def select_rows(rows: Sequence[PickerRow], words: str) -> list[PickerRow]:
    """Return the rows that contain every typed word, whatever its case."""
    typed_words = words.lower().split()
    return [
        row for row in rows if all(word in f"{row.text} {row.note}".lower() for word in typed_words)
    ]
