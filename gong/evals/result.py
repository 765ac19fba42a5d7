"""What is kept of a run: a folder with its choices, and a file for each try that is finished.

    RUN/run.json               what was chosen: model, agent, place
    RUN/lock                   held while a program works on it
    RUN/tries/TASK/N.json      the result of try N, written whole
    RUN/tries/TASK/N.log       the end of what the tests printed
    RUN/tries/TASK/N.begun     what a try that is not finished has made, to be removed

A try is finished when its result is there, and is never run again; whatever ends the program before
leaves a try that runs from its beginning.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec
from msgspec import Struct

from ..errors import ConfigurationError
from ..private_files import write_private_file
from .places import PlaceKind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Outcome = Literal[
    "solved",
    "failed",
    "bad-task",
    "bad-environment",
    "no-solution",
    "agent-error",
    "verifier-timeout",
    "verifier-flood",
    "verifier-error",
    "no-reward",
    "bad-reward",
]
MEANINGS: dict[Outcome, str] = {
    "solved": "the reward is 1",
    "failed": "the reward is less than 1",
    "bad-task": "the folder of the task is wrong; nothing ran",
    "bad-environment": "its environment could not be made",
    "no-solution": "it has no such script in `solution`",
    "agent-error": "the model could not be asked, or the session broke",
    "verifier-timeout": "its tests took longer than they may",
    "verifier-flood": "its tests printed without end",
    "verifier-error": "its tests could not be run",
    "no-reward": "its tests wrote no reward",
    "bad-reward": "what its tests wrote is no number from 0 to 1",
}
Stop = Literal["", "time", "cost", "turns", "loop"]
AgentKind = Literal["gong", "solution", "spoil"]

T = TypeVar("T")


class RunChoices(Struct, frozen=True, forbid_unknown_fields=True):
    """What a run was begun with; a run is continued with the same."""

    agent: AgentKind
    model: str
    """provider/model; "" where a script is the agent."""
    place: PlaceKind
    network: bool = False
    version: int = 1


class TryResult(Struct, frozen=True):
    """One finished try."""

    task: str
    number: int
    """From 1."""
    outcome: Outcome
    reward: float | None = None
    """From 0 to 1; None where there is none."""
    detail: str = ""
    """Why, in one line."""
    stopped: Stop = ""
    """The limit that stopped the agent."""
    tape: str = ""
    """Id of the tape of the agent's session."""
    model: str = ""
    cost: float | None = None
    """USD; None where it is not known."""
    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    agent_seconds: float = 0.0
    verifier_seconds: float = 0.0
    began: str = ""
    digest: str = ""
    """Of the task's files."""

    @property
    def is_solved(self) -> bool:
        """Whether it counts as solved."""
        return self.outcome == "solved"

    @property
    def is_error(self) -> bool:
        """Whether it says nothing of the agent's work."""
        return self.outcome not in ("solved", "failed")


class UnfinishedTry(Struct, frozen=True):
    """What a try that began has made outside of the folder of its run."""

    folder: str
    container: str = ""


class RunFolder:
    """The folder of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the folder for this program; raises ConfigurationError while another one does."""
        self.path.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                why = f"{self.path}: another program works on this run"
                raise ConfigurationError(why) from None
            yield
        finally:
            os.close(lock)

    def read_choices(self) -> RunChoices | None:
        """Return what the run was begun with; None where none was."""
        return self._read("run.json", RunChoices)

    def write_choices(self, choices: RunChoices) -> None:
        """Keep what the run is begun with."""
        self._write("run.json", choices)

    def read_results(self) -> list[TryResult]:
        """Return the finished tries, by task and number; raises ConfigurationError."""
        names = (self.path / "tries").glob("*/*.json")
        results = [
            result
            for name in names
            if (result := self._read(str(name.relative_to(self.path)), TryResult)) is not None
        ]
        return sorted(results, key=lambda result: (result.task, result.number))

    def write_result(self, result: TryResult, log: bytes = b"") -> None:
        """Finish a try."""
        name = f"tries/{result.task}/{result.number}"
        if log:
            write_private_file(self.path / f"{name}.log", log)
        self._write(f"{name}.json", result)

    def remove_result(self, result: TryResult) -> None:
        """Forget a try, so that it runs again."""
        (self.path / f"tries/{result.task}/{result.number}.json").unlink(missing_ok=True)

    def begin_try(self, task: str, number: int, remains: UnfinishedTry) -> None:
        """Keep what a try makes, before it makes it."""
        self._write(f"tries/{task}/{number}.begun", remains)

    def end_try(self, task: str, number: int) -> None:
        """Forget what a try has made, which is removed."""
        (self.path / f"tries/{task}/{number}.begun").unlink(missing_ok=True)

    def take_unfinished(self) -> list[UnfinishedTry]:
        """Return what tries have left that were killed, and forget it."""
        left = []
        for path in (self.path / "tries").glob("*/*.begun"):
            with suppress(ConfigurationError):
                remains = self._read(str(path.relative_to(self.path)), UnfinishedTry)
                left += [remains] if remains is not None else []
            path.unlink(missing_ok=True)
        return left

    def _read(self, name: str, kind: type[T]) -> T | None:
        try:
            return msgspec.json.decode((self.path / name).read_bytes(), type=kind)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigurationError(f"{self.path / name} cannot be read: {error}") from error

    def _write(self, name: str, value: Struct) -> None:
        data = msgspec.json.format(msgspec.json.encode(value), indent=1)
        write_private_file(self.path / name, data + b"\n")
