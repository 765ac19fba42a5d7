"""How far the estimate of tokens is off, against the real tokenizers: `python bench/tokens.py`.

Needs the extra `tokens`; every text is of this project or stands here. Exits with 1 when a target
is missed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from gong.llm.tokens import count_tokens, estimate_tokens

ROOT = Path(__file__).parent.parent
TARGET = 20.0


def texts() -> dict[str, str]:
    """Return each kind of text by name."""
    read = lambda *patterns: "".join(  # noqa: E731
        file.read_text("utf-8") for one in patterns for file in sorted(ROOT.glob(one))
    )
    rows = [
        {
            "id": number,
            "name": f"entry {number}",
            "ok": number % 3 == 0,
            "tags": ["a", "b"],
            "x": 1.5,
        }
        for number in range(400)
    ]
    listing = subprocess.run(
        ["ls", "-laR", ROOT / "gong"], capture_output=True, text=True, check=True
    ).stdout
    return {
        "English": read("docs/*.md", "README.md", "CONTRIBUTING.md"),
        "Python": read("gong/**/*.py", "tape/**/*.py"),
        "tests (Python)": read("tests/gong/**/*.py"),
        "Chinese": read("bench/texts/chinese.txt"),
        "Japanese": read("bench/texts/japanese.txt"),
        "JSON, indented": json.dumps(rows, indent=2),
        "JSON, one line": json.dumps(rows),
        "TOML": read("gong/llm/data/*.toml"),
        "ls -laR": listing,
    }


def main() -> int:
    """Print the table; 1 when an estimate is further off than the target or nothing is exact."""
    print(
        f"{'text':<16}{'characters':>11}{'o200k':>9}{'estimate':>10}{'off':>8}{'chars/4':>9}{'cl100k':>9}"
    )
    missed = False
    for name, text in texts().items():
        exact, about, older = (
            count_tokens(text, "gpt-5"),
            estimate_tokens(text),
            count_tokens(text, "gpt-4"),
        )
        if not (exact.exact and older.exact):
            print("no tokenizer here: pip install 'gong[tokens]'")
            return 1
        off = 100 * (about / exact.tokens - 1)
        plain = 100 * (len(text) / 4 / exact.tokens - 1)
        missed |= abs(off) > TARGET
        print(
            f"{name:<16}{len(text):>11}{exact.tokens:>9}{about:>10}{off:>+7.1f}%{plain:>+8.1f}%{older.tokens:>9}"
        )
    print(f"target: less than {TARGET:g} % off o200k: {'missed' if missed else 'met'}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
