"""The program that parses one file and prints its outline; see `grammar_outline`.

Its argument is the file. Exit code 1 and one line on standard error say why there is none.
"""

from __future__ import annotations

import sys
from pathlib import Path

from .grammar_outline import OutlineError, find_language, list_symbols


def print_outline() -> int:
    """Print the outline of the file that is named."""
    path = sys.argv[1]
    try:
        text = Path(path).read_bytes().decode("utf-8", "replace")
        outline = [*list_symbols(text, find_language(path) or "")]
    except (OSError, OutlineError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.buffer.writelines(f"{line}\n".encode("utf-8", "replace") for line in outline)
    return 0


if __name__ == "__main__":
    sys.exit(print_outline())
