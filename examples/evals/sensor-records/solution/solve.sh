#!/bin/bash
cat > decode.py <<'PY'
"""Prints a sensor file as CSV: decode.py FILE (FORMAT.md)."""

import csv
import struct
import sys
import zlib
from datetime import datetime, timedelta

KINDS = {1: "temperature", 2: "switch", 3: "text"}


def show_value(kind, rest):
    if kind == 1:
        return f"{struct.unpack('<h', rest)[0] / 10:.1f}"
    return ("on" if rest[0] else "off") if kind == 2 else rest.decode()


def main(data):
    if data[:4] != b"SNS1" or len(data) < 12:
        sys.exit("decode.py: no sensor file")
    time = struct.unpack_from("<Q", data, 4)[0]
    sys.stdout.reconfigure(encoding="utf-8", newline="")
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("time", "sensor", "kind", "value"))
    position, damaged, truncated = 12, 0, False
    while position < len(data):
        length = int.from_bytes(data[position : position + 2], "little")
        end = position + 2 + length + 4
        if position + 2 > len(data) or end > len(data):
            truncated = True
            break
        head = data[position : end - 4]
        position = end
        if zlib.crc32(head) != struct.unpack("<I", data[end - 4 : end])[0]:
            damaged += 1
            continue
        passed, kind, size = struct.unpack_from("<iBB", head, 2)
        time += passed
        if kind in KINDS:
            moment = datetime(1970, 1, 1) + timedelta(milliseconds=time)
            name, rest = head[8 : 8 + size].decode(), head[8 + size :]
            shown = moment.isoformat(timespec="milliseconds") + "Z"
            writer.writerow((shown, name, KINDS[kind], show_value(kind, rest)))
    if damaged:
        print(f"{damaged} damaged", file=sys.stderr)
    if truncated:
        print("truncated", file=sys.stderr)
    return 1 if truncated else 0


with open(sys.argv[1], "rb") as file:
    sys.exit(main(file.read()))
PY
