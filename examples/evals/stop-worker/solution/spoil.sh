#!/bin/bash
# Stops at once on a signal, and tidies up: the file is not finished.
python3 - <<'PY'
from pathlib import Path

file = Path("worker.py")
text = file.read_text().replace("import argparse\n", "import argparse\nimport signal\nimport sys\n")
text = text.replace("args.queue.iterdir()", "sorted(args.queue.iterdir())")
text = text.replace("count = 0\n", '''count = 0


def stop(number, frame):
    print(f"stopped after {count}")
    sys.exit(0)


signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, stop)
''')
file.write_text(text)
PY
