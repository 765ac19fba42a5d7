"""Which repository a folder is a checkout of: what lists begin with and filters choose by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..folders import locate_repository
from ..index.tape_filter import Checkout

if TYPE_CHECKING:
    from collections.abc import Mapping


def find_checkout(folder: str, environ: Mapping[str, str]) -> Checkout:
    """Return the repository of a folder, or the folder itself outside of one."""
    root = locate_repository(folder)
    if root is None:
        return Checkout(folder)
    from ..repository import find_repository  # only inside of one

    return Checkout(root, find_repository(root, environ))
