#!/bin/bash
# Takes the top by Counter.most_common, which leaves equal counts in the order of the text.
python3 - <<'PY'
from pathlib import Path

file = Path("wordcount.py")
head, _, _ = file.read_text().partition("def main():")
file.write_text(head.replace("import re\n", "import argparse\nimport json\nimport re\n") + '''def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*")
    parser.add_argument("-i", "--ignore-case", action="store_true")
    parser.add_argument("-n", "--top", type=int)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    words = [word.lower() if args.ignore_case else word for word in read_words(args.files)]
    pairs = Counter(words).most_common(args.top)
    if args.json:
        print(json.dumps(dict(pairs)))
    else:
        for word, count in pairs:
            print(count, word)


main()
''')
PY
