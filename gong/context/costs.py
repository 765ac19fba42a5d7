"""Tokens and cost of model calls, grouped and summed; and a limit on the cost. Pure.

An unknown cost never counts as zero: `unknown_calls` counts those calls, and a sum that leaves some
out is shown with a `+`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from tape.model.entries import Assistant, Context, Cost, SideUsage, Usage, User, join_texts
from tape.text import shorten_to_width

from ..llm.prices import count_prompt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tape.model.line import Entry

    from ..llm.models import ModelInfo

FindPrice = Callable[[str, str, Usage, str], "Cost | None"]
"""From provider, model, usage and tape time of a call to what it cost, None if unknown."""
CostGrouping = Literal["call", "turn", "branch", "tape", "provider", "day"]
"""The ways to group calls; a turn is a prompt and everything that answers it."""
COST_GROUPINGS: tuple[CostGrouping, ...] = ("call", "turn", "branch", "tape", "provider", "day")

NO_USAGE = Usage()
_DECIMALS = 9
"""Decimal digits of a sum in USD; rounding makes it independent of the order."""
_LABEL_COLUMNS = 60
_LONG_PROMPT, _MIN_CALLS, _MIN_COST = 100_000, 10, 0.10
"""Tokens of a long prompt; below so many calls and USD there is nothing to save."""


class Spend(Struct, frozen=True, gc=False):
    """The total usage and cost of some calls."""

    calls: int = 0
    usage: Usage = NO_USAGE
    cost: float | None = None
    """USD of the calls with a known cost; None if no cost is known."""
    unknown_calls: int = 0
    """Number of calls that took tokens or answered and whose cost is unknown."""

    def __add__(self, other: Spend) -> Spend:
        """Return the sum of both."""
        known = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Spend(
            self.calls + other.calls,
            self.usage + other.usage,
            round(sum(known), _DECIMALS) if known else None,
            self.unknown_calls + other.unknown_calls,
        )


class ModelCall(NamedTuple):
    """One model call."""

    entry: str
    time: str
    provider: str
    model: str
    purpose: str
    """`answer`, or the purpose of a call outside the conversation."""
    spend: Spend


def extract_model_call(entry: Entry, price: FindPrice | None = None) -> ModelCall | None:
    """Return the model call that an entry records, None for any other entry.

    `price` is asked for the cost of one that has none on the tape, such as an imported one.
    """

    def find_cost(call: Assistant | SideUsage) -> Cost | None:
        if call.cost is not None or price is None:
            return call.cost
        return price(call.provider, call.model, call.usage, entry.time)

    match entry.data:
        case Assistant() as answer if answer.model:
            spend = compute_spend(answer.usage, find_cost(answer), answered=bool(answer.content))
            return ModelCall(entry.id, entry.time, answer.provider, answer.model, "answer", spend)
        case SideUsage() as side:
            spend = compute_spend(side.usage, find_cost(side))
            return ModelCall(entry.id, entry.time, side.provider, side.model, side.purpose, spend)
    return None


def compute_spend(usage: Usage, cost: Cost | None, *, answered: bool = False) -> Spend:
    """Return usage and cost of a call; one without tokens and answer costs nothing."""
    took = answered or usage != NO_USAGE
    unknown = cost is None and took
    return Spend(1, usage, None if cost is None else cost.amount, int(unknown))


def sum_spend(entries: Iterable[Entry]) -> Spend:
    """Return the total usage and cost of the calls among the entries."""
    total = Spend()
    for entry in entries:
        if (call := extract_model_call(entry)) is not None:
            total += call.spend
    return total


class CostRow(Struct, frozen=True):
    """One sum: its key (an id or name), and a label for people."""

    key: str
    label: str
    spend: Spend


class CostOrigin(NamedTuple):
    """The tape and branch of entries, for sums by tape or branch."""

    tape: str = ""
    title: str = ""
    branch: str = ""


NO_ORIGIN = CostOrigin()


class CostReport:
    """Takes entries, oldest first, and sums their calls in one of the `WAYS`."""

    def __init__(self, by: CostGrouping, price: FindPrice | None = None) -> None:
        self.by, self._price = by, price
        self.total = Spend()
        self.calls: list[ModelCall] = []
        self._turn = ("", "before the first prompt")
        self._rows: dict[str, CostRow] = {}

    def take(self, entry: Entry, where: CostOrigin = NO_ORIGIN) -> None:
        """Add the call of an entry, if it records one."""
        match entry.data:
            case User(content=content) | Context(origin="follow_up", content=content):
                self._turn = entry.id, shorten_to_width(join_texts(content), _LABEL_COLUMNS)
        call = extract_model_call(entry, self._price)
        if call is None:
            return
        self.calls.append(call)
        self.add(*self._choose_row(call, where), call.spend)

    def add(self, key: str, label: str, spend: Spend) -> None:
        """Add usage to one row and to the total."""
        self.total += spend
        before = self._rows.get(key)
        self._rows[key] = CostRow(key, label, before.spend + spend if before else spend)

    def rows(self) -> list[CostRow]:
        """Return the sums: calls, turns and days in order, others by tokens, most first."""
        rows = list(self._rows.values())
        if self.by in ("call", "turn"):
            return rows
        if self.by == "day":
            return sorted(rows, key=lambda row: row.key)
        return sorted(rows, key=lambda row: (-row.spend.usage.total, row.key))

    def _choose_row(self, call: ModelCall, where: CostOrigin) -> tuple[str, str]:
        """Return the key and the label of the row a call belongs to."""
        match self.by:
            case "call":
                model = f"{call.provider}/{call.model}" if call.provider else call.model
                return call.entry, model if call.purpose == "answer" else f"{model} {call.purpose}"
            case "turn":
                return self._turn
            case "branch":
                return f"{where.tape}:{where.branch}", where.title
            case "tape":
                return where.tape, where.title
            case "provider":
                return (call.provider or call.model,) * 2
            case "day":
                return call.time[:10], call.time[:10]


class CostBudget(Struct, frozen=True):
    """A limit on the cost of a run in USD, and the cost so far."""

    limit: float
    spend: Spend = Spend()

    @property
    def is_over(self) -> bool:
        """Whether the known costs have reached the limit, so that no further call may start."""
        return (self.spend.cost or 0.0) >= self.limit

    @property
    def warning(self) -> str | None:
        """The warning to show if the limit cannot be enforced because prices are unknown."""
        if not self.spend.unknown_calls:
            return None
        return (
            f"the max cost of {format_money(self.limit)} cannot be enforced"
            f"{format_unknown_calls(self.spend)}: set the model's price in config.toml ([models])"
        )


def format_money(amount: float) -> str:
    """Return USD as text: with cents, and with more digits below one dollar."""
    if amount >= 1 or amount == 0:
        return f"${amount:,.2f}"
    return f"${amount:.3f}" if amount >= 0.01 else f"${amount:.6f}".rstrip("0")  # noqa: PLR2004


def format_cost(spend: Spend) -> str:
    """Return a cost as text; with `+` if some costs are unknown, `unknown` if all are."""
    if spend.cost is None:
        return "unknown" if spend.unknown_calls else format_money(0.0)
    return format_money(spend.cost) + "+" * bool(spend.unknown_calls)


def render_token_usage(spend: Spend) -> list[str]:
    """Return the tokens and the cost of some calls as text (M183)."""
    usage = spend.usage
    cached = [
        f"{count:,} {name}"
        for count, name in ((usage.cache_read, "read"), (usage.cache_write, "written"))
        if count
    ]
    return [
        "Token Usage:",
        f"  Input:  {usage.input:,} tokens",
        f"  Output: {usage.output:,} tokens",
        *([f"  Cache:  {', '.join(cached)} tokens"] if cached else []),
        f"  Total:  {usage.total:,} tokens",
        f"Estimated Cost: {format_cost(spend)}{format_unknown_calls(spend)}",
    ]


def suggest_savings(
    calls: Sequence[ModelCall], list_models: Callable[[], Iterable[ModelInfo]]
) -> list[str]:
    """Return hints of what makes such calls cheaper, in sentences.

    There are none below ten calls, and below ten cents.
    """
    total = sum((call.spend for call in calls), Spend())
    if len(calls) < _MIN_CALLS or (total.cost or 0.0) < _MIN_COST:
        return []
    hints = []
    prompts = [_count_prompt(call) for call in calls]
    if (long := sum(count > _LONG_PROMPT for count in prompts)) * 4 > len(calls):
        hints.append(
            f"{long} of {len(calls)} calls sent more than {_LONG_PROMPT:,} tokens: /compact, or a "
            "new session for a new task, makes them shorter."
        )
    cached = [call for call in calls if call.spend.usage.cache_read is not None]
    sent, read = sum(map(_count_prompt, cached)), total.usage.cache_read or 0
    if len(cached) >= _MIN_CALLS and read * 2 < sent:
        hints.append(
            f"{read * 100 // sent} % of the input came from the provider's cache: it is kept while "
            "model, tools and instructions stay the same, and pauses are short."
        )
    return [*hints, *_suggest_model(calls, max(prompts), list_models())]


def _count_prompt(call: ModelCall) -> int:
    return count_prompt(call.spend.usage)


def _suggest_model(
    calls: Sequence[ModelCall], window: int, models: Iterable[ModelInfo]
) -> Iterator[str]:
    """Yield a hint at the provider's newest model that halves the cost of the dearest one."""
    spent: dict[tuple[str, str], Spend] = {}
    for call in calls:
        key = call.provider, call.model
        spent[key] = spent.get(key, Spend()) + call.spend
    (provider, model), most = max(spent.items(), key=lambda row: row[1].cost or 0.0)
    for candidate in models:
        if candidate.provider != provider or candidate.price is None or not candidate.can("tools"):
            continue
        dollars = candidate.price.compute_cost(most.usage)
        if (candidate.context_window or 0) > window and 0 < dollars * 2 <= (most.cost or 0.0):
            yield (
                f"With {candidate.id} the tokens of {provider}/{model} would cost about "
                f"{format_money(dollars)} instead of {format_cost(most)}: use it for easy tasks "
                "and sub-agents."
            )
            return


def format_unknown_calls(spend: Spend) -> str:
    """Return, in parentheses, the number of calls of unknown cost; empty if zero."""
    unknown = spend.unknown_calls
    return f" ({unknown} {'call' if unknown == 1 else 'calls'} of unknown cost)" if unknown else ""


def encode_spend(spend: Spend) -> dict[str, Any]:
    """Return a sum as `--json` prints it, null if unknown."""
    usage = msgspec.structs.asdict(spend.usage)
    return {
        "calls": spend.calls,
        **usage,
        "cost": spend.cost,
        "unknown_calls": spend.unknown_calls,
    }
