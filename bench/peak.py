"""Do one thing in this process and tell its highest resident memory, in bytes, before and after.

    python bench/peak.py                       nothing: the bare interpreter
    python bench/peak.py tape ARGUMENTS…       a command line
    python bench/peak.py open STORE FOLDER     a tape up to its sendable view
    python bench/peak.py entries STORE FOLDER  all entries of a tape
    python bench/peak.py verify STORE FOLDER   every hash of a tape

The last line on standard error is `{"before": N, "after": N}`; what is imported for all but
`tape` counts as before. Linux tells it as VmHWM; elsewhere getrusage does (ru_maxrss).
"""

import atexit
import sys


def highest() -> int:
    try:
        with open("/proc/self/status", "rb") as status:  # noqa: PTH123 (pathlib has a weight)
            for line in status:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    import resource  # noqa: PLC0415 (only where it is needed: the bare interpreter is measured)

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main() -> None:
    what, *arguments = sys.argv[1:] or ["nothing"]
    before = highest()

    def tell() -> None:
        sys.stderr.write(f'\n{{"before": {before}, "after": {highest()}}}\n')

    atexit.register(tell)
    if what == "tape":
        from tape.cli import main as command  # noqa: PLC0415

        sys.argv = ["tape", *arguments]
        command()
    elif what in {"open", "entries", "verify"}:
        import reading  # noqa: PLC0415

        with reading.opened(*arguments) as tape:
            before = highest()
            if what == "open":
                reading.build_messages(tape, tape.head(), reading.TARGET)
            elif what == "entries":
                tape.entries(tape.head())
            else:
                reading.verified(tape)


if __name__ == "__main__":
    main()
