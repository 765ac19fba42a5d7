#!/bin/bash
cat > pages.py <<'PY'
"""Cuts lists into pages."""


def count_pages(items, size):
    """Return the number of pages."""
    if size < 1:
        raise ValueError(f"a page of {size} items")
    return -(-len(items) // size)


def get_page(items, number, size):
    """Return the items of a page; the first is number 1."""
    if not 1 <= number <= count_pages(items, size):
        raise IndexError(f"no page {number}")
    start = (number - 1) * size
    return items[start : start + size]
PY
