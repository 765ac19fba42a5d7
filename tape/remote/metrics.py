"""Figures of a program that keeps pushing, as Prometheus reads them; pure.

    # HELP tape_push_bytes_total Compressed bytes that were pushed.
    # TYPE tape_push_bytes_total counter
    tape_push_bytes_total{remote="team",machine="laptop"} 18270

Counters begin at 0 with the process, and only rise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .push import PushOutcome

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metric(NamedTuple):
    """One figure, for each set of labels that it has."""

    name: str
    kind: Literal["counter", "gauge"]
    about: str
    samples: Sequence[tuple[Mapping[str, str], float]]


def render_metrics(metrics: Iterable[Metric]) -> str:
    """Return figures in the text format of Prometheus."""
    lines: list[str] = []
    for metric in metrics:
        lines.append(f"# HELP {metric.name} {_escape_text(metric.about)}")
        lines.append(f"# TYPE {metric.name} {metric.kind}")
        for labels, value in metric.samples:
            pairs = ",".join(
                f'{name}="{_escape_text(text, quote=True)}"' for name, text in labels.items()
            )
            lines.append(f"{metric.name}{{{pairs}}} {_format_value(value)}")
    return "".join(f"{line}\n" for line in lines)


def _escape_text(text: str, *, quote: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quote else text


def _format_value(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


@dataclass(slots=True)
class PushMetrics:
    """What became of the pushes to one remote; changed by one thread, read by any."""

    remote: str
    machine: str
    rounds: int = 0
    failed: int = 0
    tapes: int = 0
    chunks: int = 0
    bytes: int = 0
    refused: int = 0
    behind: int = 0
    last_push: float = 0
    """In seconds since 1970; 0 before the first."""

    def record_changed(self, changed: int) -> None:
        """Record that this number of tapes has something new."""
        self.behind = changed

    def record_push(self, outcomes: Sequence[PushOutcome], now: float) -> None:
        """Record what a push did."""
        done = [outcome for outcome in outcomes if outcome.chunks]
        left = [outcome for outcome in outcomes if outcome.error or outcome.secrets]
        self.rounds += 1
        self.tapes += len(done)
        self.chunks += sum(outcome.chunks for outcome in done)
        self.bytes += sum(outcome.bytes for outcome in done)
        self.refused += len(left)
        self.behind = len(left)
        if done:
            self.last_push = now

    def record_failure(self) -> None:
        """Record that the remote did not answer."""
        self.rounds += 1
        self.failed += 1

    def list_metrics(self) -> list[Metric]:
        """Return the figures."""
        labels = {"remote": self.remote, "machine": self.machine}

        def count(name: str, about: str, value: float) -> Metric:
            return Metric(f"tape_push_{name}_total", "counter", about, [(labels, value)])

        return [
            count("rounds", "Looks for what is new.", self.rounds),
            count("failed", "Looks that ended because the remote did not answer.", self.failed),
            count("tapes", "Tapes of which something was pushed.", self.tapes),
            count("chunks", "Chunks that were created.", self.chunks),
            count("bytes", "Compressed bytes that were pushed.", self.bytes),
            count("refused", "Tapes that were not pushed: secrets, damage.", self.refused),
            Metric(
                "tape_push_behind_tapes",
                "gauge",
                "Tapes with something new that the remote does not have.",
                [(labels, self.behind)],
            ),
            Metric(
                "tape_push_last_timestamp_seconds",
                "gauge",
                "When something was pushed last; 0 if nothing was.",
                [(labels, self.last_push)],
            ),
        ]
