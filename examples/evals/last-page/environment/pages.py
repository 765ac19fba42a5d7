"""Cuts lists into pages."""


def count_pages(items, size):
    """Return the number of pages."""
    return len(items) // size


def get_page(items, number, size):
    """Return the items of a page; the first is number 1."""
    start = (number - 1) * size
    return items[start : start + size]
