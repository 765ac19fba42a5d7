"""Which tapes are meant, by the facts they carry: one rule for rows, and as SQL for queries; pure.

Conditions are joined by AND. A tape that does not say what is asked for is not meant.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ..text import replace_surrogates

_IN_PART = ("repository", "person", "machine")
"""The columns of a tape that a filter may ask for a part of."""
FACTS = (*_IN_PART, "agent")
"""The columns of a tape that a filter may ask for."""


class TapeFacts(Protocol):
    """What a row says of its tape."""

    @property
    def cwd(self) -> str:
        """The current folder."""

    @property
    def project(self) -> str | None:
        """The top of the repository of that folder."""

    @property
    def repository(self) -> str | None:
        """The name of that repository."""

    @property
    def agent(self) -> str | None:
        """The program that made the session."""


class Checkout(NamedTuple):
    """A folder as a checkout: what is recorded in any other one of its repository belongs to it."""

    root: str
    """The top of the repository, or the folder itself outside of one."""
    repository: str | None = None
    """Its name, if it has one: `host/owner/name`."""

    def has(self, row: TapeFacts) -> bool:
        """Return whether a tape is of this repository; one that names none, of this very folder."""
        if self.repository is not None and row.repository is not None:
            return row.repository == self.repository
        return (row.project or row.cwd) == self.root


class TapeFilter(NamedTuple):
    """What a tape has to say of itself; None is for all."""

    repository: str | None = None
    """A part of its name; letters A to Z in any case, here and below."""
    person: str | None = None
    """A part of name or email."""
    machine: str | None = None
    checkout: Checkout | None = None
    """The repository of this folder, wherever it is checked out."""
    agents: tuple[str, ...] = ()
    """Whole names of programs, one of which made it; () is for all."""

    def matches(self, row: TapeFacts) -> bool:
        """Return whether a tape is meant."""
        return (
            (self.checkout is None or self.checkout.has(row))
            and (not self.agents or _replace_capitals(row.agent or "") in self._list_agents())
            and all(
                _replace_capitals(part) in _replace_capitals(getattr(row, name) or "")
                for name, part in self._list_parts()
            )
        )

    def build_condition(self) -> tuple[str, list[str]]:
        """Return what a WHERE clause asks of the table `tapes`, and the values for its `?`.

        It names no other column than those of `tapes`; "" where all are meant.
        """
        conditions, values = list[str](), list[str]()
        for name, part in self._list_parts():
            conditions.append(f"{name} IS NOT NULL AND instr(lower({name}), lower(?)) > 0")
            values.append(part)
        if self.checkout is not None:
            at_root, named = "coalesce(project, cwd) = ?", self.checkout.repository
            if named is None:
                conditions.append(at_root)
            else:
                conditions.append(f"(repository = ? OR repository IS NULL AND {at_root})")
                values.append(replace_surrogates(named))
            values.append(replace_surrogates(self.checkout.root))
        if self.agents:
            agents = self._list_agents()
            conditions.append(f"lower(agent) IN ({', '.join('?' * len(agents))})")
            values += agents
        return " AND ".join(conditions), values

    def _list_parts(self) -> list[tuple[str, str]]:
        named = zip(_IN_PART, self[:3], strict=True)
        return [(name, replace_surrogates(part)) for name, part in named if part is not None]

    def _list_agents(self) -> list[str]:
        return [_replace_capitals(replace_surrogates(name)) for name in self.agents]


def _replace_capitals(text: str) -> str:
    """Return a text as SQLite's `lower` does: only the letters A to Z change."""
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


EVERY_TAPE = TapeFilter()
