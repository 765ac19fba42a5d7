"""Write the tables of gong/llm/data as JSON, which gong reads faster than TOML: `make docs`."""

from __future__ import annotations

import tomllib
from hashlib import sha256

import msgspec

from gong.llm.models import DATA, ParsedTables

NAMES = sorted(path.stem for path in DATA.glob("*.toml"))


def parse_tables(name):
    """Return the bytes of `NAME.json`."""
    source = (DATA / f"{name}.toml").read_bytes()
    parsed = ParsedTables(sha256(source).hexdigest(), tomllib.loads(source.decode()))
    return msgspec.json.format(msgspec.json.encode(parsed), indent=1) + b"\n"


if __name__ == "__main__":
    for name in NAMES:
        (DATA / f"{name}.json").write_bytes(parse_tables(name))
