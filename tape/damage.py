"""Damage that a reader skips, reported as a Python warning or to a callback.

Readers leave out entries that changed on the disk after they were written, and always report it: a
function without a `skipped` callback issues a DamageWarning.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


class DamageWarning(UserWarning):
    """An entry was left out because it changed on the disk after it was written."""


def warn_of_damage(text: str) -> None:
    """Issue a DamageWarning: the default of the library."""
    import warnings  # noqa: PLC0415 (where nothing is damaged nobody needs it)

    warnings.warn(text, DamageWarning, stacklevel=3)


@contextmanager
def catch_damage_warnings(tell: Callable[[str], object]) -> Iterator[None]:
    """Pass the text of each distinct DamageWarning in the block to `tell` instead."""
    import warnings  # noqa: PLC0415 (as above)

    seen: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("always", DamageWarning)
        show = warnings.showwarning

        def divert(message: Warning | str, category: type[Warning], *place: Any) -> None:
            if not issubclass(category, DamageWarning):
                show(message, category, *place)
            elif str(message) not in seen:
                seen.add(str(message))
                tell(str(message))

        warnings.showwarning = divert  # type: ignore[assignment]
        yield
