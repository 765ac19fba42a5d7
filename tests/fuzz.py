"""Search all properties for as long as is wished, each time elsewhere: `make fuzz SECONDS=300`.

Ends early with exit code 1 when something was found; the cases then lie in `tests/found`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from tests.found import FOLDER

ROOT = FOLDER.parent.parent


def main(seconds: float) -> int:
    """Search for some seconds (a property that has begun is finished); return the exit code."""
    until, rounds, code = time.time() + seconds, 0, 0
    before = set(FOLDER.glob("*.json"))
    files = [
        str(path.relative_to(ROOT))
        for path in sorted(FOLDER.parent.rglob("test_*.py"))
        if "hypothesis" in path.read_text("utf-8")
    ]
    while time.time() < until and code == 0:
        rounds += 1
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-rfE", *files]
        env = {**os.environ, "FUZZ_UNTIL": repr(until + rounds / 1e6)}
        code = subprocess.run(command, cwd=ROOT, env=env, check=False).returncode
    print(f"searched for {time.time() - until + seconds:.0f} s, in {rounds} rounds")
    for path in sorted(set(FOLDER.glob("*.json")) - before):
        print(f"found: {path.relative_to(ROOT)}")
    return code


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 120))
