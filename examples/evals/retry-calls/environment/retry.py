"""Calls again what fails for a moment."""


class TryAgain(Exception):
    """Raised by a call that may succeed later; `after` is the least number of seconds to wait."""

    def __init__(self, message="", after=0.0):
        super().__init__(message)
        self.after = after


def retry(function, *, attempts=5, first=1.0, factor=2.0, longest=30.0, deadline=None, sleep, clock, random):
    """Return what `function()` returns, calling it at most `attempts` times.

    - Only `TryAgain` leads to another call; any other exception passes through at once.
    - Before call n + 1 it waits `min(first * factor ** (n - 1), longest)` seconds, times a number
      between 0.5 and 1: `0.5 + random() / 2`, with one call of `random` for each wait. But never
      less than `after` of the error, even beyond `longest`.
    - `deadline` is a number of seconds since the start, by `clock()`. It does not begin a wait that
      would end after it: then the last error is raised at once. Without one there is no limit.
    - If no call succeeds, the last `TryAgain` is raised; its `attempts` is the number of calls made.
    - `attempts` below 1 is a ValueError, before anything is called.
    """
    raise NotImplementedError
