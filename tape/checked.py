"""Checked reading: only lines whose hashes match and that follow one from the other.

All other lines are left out and reported, one text each, so that changed bytes are never taken for
what was written. State: the last good line, and the number of damaged lines after it, which also
shows missing, repeated or misordered lines. Data of an interrupted redaction is read as blank.
"""

from __future__ import annotations

from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING

from .errors import Damaged, NewerFormat, TapeError
from .line import FORMAT, Header, blank_redacted_data, has_valid_data, is_data_redacted, read_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Set as AbstractSet

FSCK_ADVICE = "`tape fsck` explains it"
_DATA = b',"data":'
_V = b'","v":%d,"parentId":' % FORMAT
_V_START = len(b'{"id":"') + 40
_PARENT = _V_START + len(_V) + 1
_ID = slice(7, 47)
_held: set[int] = set()
"""Digests of the runs whose lines this process has verified."""
_MOST_HELD = 1 << 15
"""How many runs are remembered: 4 GB of entries in 3 MB."""


def forget_checked_runs() -> None:
    """Forget the verified runs, so that everything is checked again; used by benchmarks."""
    _held.clear()


class LineChecker:
    """Checks the lines of one phase file, read in one direction.

    `redacted` returns the ids that redact entries of the tape name; it is called only where data
    does not match its hash. Lines that are left out are reported to `skipped`.
    """

    __slots__ = ("_damaged", "_ids", "_last", "_phase", "_redacted", "_skipped", "_way")

    def __init__(
        self,
        phase: str,
        redacted: Callable[[], AbstractSet[str]],
        skipped: Callable[[str], None],
        *,
        back: bool = False,
    ) -> None:
        self._phase, self._redacted, self._skipped = phase, redacted, skipped
        self._way = -1 if back else 1
        self._ids: AbstractSet[str] | None = None
        self._last: Header | None = None
        self._damaged = 0

    def read_run(self, start: int, data: bytes) -> tuple[bytes, Iterator[tuple[int, bytes]] | None]:
        """Return a run of whole lines as it is, or else an iterator of its checked lines.

        The iterator is None if all lines verify, as nearly always. Else it checks each line when it
        is requested, so that its report comes between those of the lines around it.
        """
        if not self._damaged and self._is_next_run(data) and _is_valid_run(data):
            self._last = read_header(data[data.rfind(b"\n", 0, -1) + 1 :].removesuffix(b"\n"))
            return data, None
        return b"", self._check_each_line(start, data)

    def _check_each_line(self, start: int, data: bytes) -> Iterator[tuple[int, bytes]]:
        for line in BytesIO(data).readlines():
            checked = self.read(start, line.removesuffix(b"\n"))
            if checked is not None:
                yield start, checked
            start += len(line)

    def read(self, offset: int, line: bytes) -> bytes | None:
        """Return a verified line; None if it is left out.

        Raises NewerFormat or OlderFormat for a line of another format.
        """
        try:
            header = read_header(line)
        except NewerFormat as error:
            raise NewerFormat(f"{self._phase}: {error}") from error
        except Damaged as error:
            self._damaged += 1
            self._report_line(offset, line, str(error))
            return None
        if self._last is not None and (header.n - self._last.n) * self._way <= 0:
            self._report_line(offset, line, "it is repeated or out of order")
            return None
        if not self._is_next_line(header):
            later = line if self._way > 0 else None
            self._report_gap(offset, header if later else self._last or header)
        self._last, self._damaged = header, 0
        if has_valid_data(line, header):
            return line
        if self._ids is None:
            self._ids = self._redacted()
        if header.id not in self._ids:
            self._report_line(offset, line, "its data does not match its hash")
            return None
        return line if is_data_redacted(line, header) else blank_redacted_data(line, self._ids)

    def _is_next_run(self, data: bytes) -> bool:
        """Return whether a run of lines follows the last good one, or is the first one read."""
        return self._last is None or data[_PARENT : _PARENT + 40] == self._last.id.encode()

    def _is_next_line(self, header: Header) -> bool:
        """Return whether no line is missing between the last good line and this one."""
        last = self._last
        if last is None:
            return True
        if self._damaged:
            return (header.n - last.n) * self._way == self._damaged + 1
        earlier, later = (last, header) if self._way > 0 else (header, last)
        return later.parent_id == earlier.id

    def _report_line(self, offset: int, line: bytes, why: str) -> None:
        entry = line[_ID].decode("ascii", "replace")[:12]
        place = f"{self._phase}: line at byte {offset} skipped"
        self._skipped(f"{place}: entry {entry}: {why}; {FSCK_ADVICE}")

    def _report_gap(self, offset: int, later: Header) -> None:
        self._skipped(
            f"{self._phase}: near byte {offset}: entry {later.id[:12]} does not follow from the "
            f"one before it: lines are missing or were inserted; {FSCK_ADVICE}"
        )


def _is_valid_run(data: bytes) -> bool:
    """Return whether both hashes of each line of a run match, and each follows the one before.

    The result is remembered by the bytes, not by their place: a file that changed in any way, also
    on the medium, gives other bytes, which are checked again.
    """
    key = hash(data)  # keyed by a random number per process; takes a tenth of the time of a check
    if key in _held:
        return True
    lines = BytesIO(data).readlines()
    first = _read_valid_header(lines[0])
    holds = first is not None and _has_valid_lines(lines[1:], first.id)
    if holds:
        if len(_held) >= _MOST_HELD:
            _held.clear()
        _held.add(key)
    return holds


def _read_valid_header(line: bytes) -> Header | None:
    """Return the header of a line with its newline; None unless both hashes match."""
    try:
        header = read_header(line.removesuffix(b"\n"))
    except TapeError:
        return None
    return header if has_valid_data(line.removesuffix(b"\n"), header) else None


def _has_valid_lines(lines: list[bytes], before: str) -> bool:
    """Return whether both hashes of each line match, and each follows the one before.

    Gives the same answer as `read_header`, `data_holds` and the parents' ids, for lines of the
    current format, in half the time.
    """
    last = before.encode()
    for line in lines:
        cut = line.find(_DATA, _V_START)
        if (
            line[_V_START : _PARENT - 1] != _V
            or line[_PARENT : _PARENT + 40] != last
            or line[-2:] != b"}\n"
            or sha256(line[_V_START + 2 : cut]).hexdigest()[:40].encode() != line[_ID]
            or sha256(line[cut + 8 : -2]).hexdigest()[:32].encode() != line[cut - 33 : cut - 1]
        ):
            return False
        last = line[_ID]
    return True


def select_checked_lines(
    found: Iterator[tuple[int, bytes]], check: LineChecker
) -> Iterator[tuple[int, bytes]]:
    """Yield offset and line of the lines in `found` that pass the check."""
    for offset, line in found:
        checked = check.read(offset, line)
        if checked is not None:
            yield offset, checked


def select_checked_runs(
    runs: Iterator[tuple[int, bytes]], check: LineChecker
) -> Iterator[tuple[int, bytes]]:
    """Yield what `check_lines` yields, from runs of whole lines, faster."""
    for start, data in runs:
        lines = data[: data.rfind(b"\n") + 1]
        if not lines:
            continue
        whole, single = check.read_run(start, lines)
        if single is not None:
            yield from single
            continue
        offset = start
        for line in BytesIO(whole).readlines():
            yield offset, line[:-1]
            offset += len(line)
