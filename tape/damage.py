"""Damage that a reader passes over: said by a Python warning, unless somebody asks to be told.

A reading of a path leaves out what changed on the disk after it was written, and never without a
word: a function that is not told whom to tell says it as a DamageWarning.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


class DamageWarning(UserWarning):
    """Something on a path is left out because it changed on the disk after it was written."""


def warn_of_damage(text: str) -> None:
    """Say what is left out of a reading, as a Python warning: the default of a library."""
    import warnings  # noqa: PLC0415 (where nothing is damaged nobody needs it)

    warnings.warn(text, DamageWarning, stacklevel=3)


@contextmanager
def tell_damage(tell: Callable[[str], object]) -> Iterator[None]:
    """Give the text of each different DamageWarning in the block to `tell` instead of Python."""
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
