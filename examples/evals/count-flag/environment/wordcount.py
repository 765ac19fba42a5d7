"""Counts words: wordcount.py [FILE...]."""

import re
import sys
from collections import Counter


def read_words(names):
    if not names:
        yield from re.findall(r"\w+", sys.stdin.read())
    for name in names:
        with open(name, encoding="utf-8") as file:
            yield from re.findall(r"\w+", file.read())


def main():
    counts = Counter(read_words(sys.argv[1:]))
    for word, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        print(f"{count} {word}")


if __name__ == "__main__":
    main()
