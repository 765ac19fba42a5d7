"""The real command against hosts that are broken or hostile: exit code, tape and key.

A few rows run on one wire each; with TEST_BUDGET above 1 every row runs on all four.
"""

from __future__ import annotations

import json

import pytest

from tests.tape.making import BUDGET
from tests.wires.hostile import KEY, ROWS
from tests.wires.pieces import WIRES
from tests.wires.raw_server import RawServer

CODES = {0, 1, 2, 3, 6, 8, 9, 75}
FEW = set(list(ROWS)[::24])
RUNS = [
    pytest.param(name, wire, id=f"{name}-{wire.preset}")
    for number, name in enumerate(ROWS)
    for place, wire in enumerate(WIRES)
    if BUDGET > 1 or (name in FEW and place == number // 24 % len(WIRES))
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "wire"), RUNS)
def test_a_hostile_host_gets_one_clear_error_or_a_good_answer(place, name, wire):
    """M149, M150."""
    (place.home / ".config/gong").mkdir(parents=True)
    limits = "timeouts = { first_byte = 5, idle = 5, quiet = 8, whole = 15 }"
    (place.home / ".config/gong/config.toml").write_text(f"[providers.{wire.preset}]\n{limits}\n")
    key = wire.variable.removesuffix("_CHAT")
    with RawServer(lambda: ROWS[name](wire)) as server:
        done = place.run(
            *("gong", "chat", "-m", f"{wire.preset}/m", "-p", "hi", "--max-turns", "2"),
            *("--output-format", "json"),
            code=None,
            **{f"{wire.variable}_BASE_URL": server.url, f"{key}_API_KEY": KEY},
        )
    out, err = done.stdout, done.stderr
    shown = (done.returncode, out[-500:], err[-2000:])
    assert done.returncode in CODES, shown
    assert "Traceback" not in err, shown
    assert KEY not in out + err
    result = json.loads(out)
    assert result["is_error"] == (done.returncode != 0), shown
    if done.returncode not in {0, 8}:
        assert result["error"]["class"], shown
        assert result["error"]["message"], shown
    assert all(count >= 0 for count in result["usage"].values() if isinstance(count, int))
    place.run("tape", "verify")
    tape = b"".join(one.read_bytes() for one in place.tapes()[0].rglob("*") if one.is_file())
    assert KEY.encode() not in tape
