#!/bin/bash
python3 - <<'PY'
from pathlib import Path

file = Path("wordcount.py")
text = file.read_text()
head, _, _ = text.partition("def main():")
head = head.replace("import re\n", "import argparse\nimport json\nimport re\n")
file.write_text(head + '''def read_top(text):
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return int(text)


def main():
    parser = argparse.ArgumentParser(description="Counts words of files or of standard input.")
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("-i", "--ignore-case", action="store_true")
    parser.add_argument("-n", "--top", type=read_top, metavar="N")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_intermixed_args()
    words = read_words(args.files)
    counts = Counter(word.lower() for word in words) if args.ignore_case else Counter(words)
    pairs = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[: args.top]
    if args.json:
        print(json.dumps(dict(pairs)))
        return
    for word, count in pairs:
        print(f"{count} {word}")


if __name__ == "__main__":
    main()
''')
PY
