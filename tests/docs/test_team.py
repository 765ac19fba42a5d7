"""docs/team.md: its compose file can be read, and its drill restores everything."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tape.remote.registry import open_remote
from tests.tape import making
from tests.tape.remote.machines import Machine
from tests.tape.remote.servers import BIN, KEYS, find_program, make_bucket, serving_postgres
from tests.tape.remote.servers import serving_ministack as serving_s3

PAGE = (Path(__file__).parents[2] / "docs/team.md").read_text("utf-8")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def find_block(word):
    """Return the block of commands that has a word."""
    (block,) = [text for _, text in _BLOCK.findall(PAGE) if word in text]
    return block


@pytest.fixture
def machine(tmp_path):
    """Return a store with two tapes, one of them with a blob."""
    machine = Machine(tmp_path / "one", None)
    for number in range(2):
        with machine.store.create(making.beginning(str(number))) as tape:
            making.write(tape, "hello", number * "x" * 70_000)
    return machine


@pytest.fixture
def run(tmp_path):
    """Return what runs a block of the page, in an empty folder."""

    def run_block(block, **env):
        (tmp_path / "work").mkdir()
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        home = {"HOME": str(tmp_path / "work"), "PATH": path}
        return subprocess.run(
            ["bash", "-e", "-c", block],
            cwd=tmp_path / "work",
            env={**home, **env},
            capture_output=True,
            text=True,
            check=False,
        )

    return run_block


def check_stores(machine, folder):
    (restored,) = folder.glob("from-*/tapes")
    assert sorted(path.name for path in restored.iterdir()) == machine.store.folders()


@pytest.mark.slow
def test_a_dump_is_restored(tmp_path, machine, run):
    pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
    with serving_postgres() as port:
        env = {"PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": "tape"}
        subprocess.run(["createdb", "tapes"], env={**os.environ, **env}, check=True)
        with open_remote(f"postgresql://tape@127.0.0.1:{port}/tapes") as machine.remote:
            machine.push()
        done = run(find_block("pg_dump"), **env)
    assert done.returncode == 0, done.stderr
    assert "2 tapes, 2 chunks" in done.stdout
    check_stores(machine, tmp_path / "work")


@pytest.mark.slow
def test_a_copied_bucket_is_restored(tmp_path, machine, run, monkeypatch):
    pytest.importorskip("obstore", reason="the extra `s3` is not installed")
    find_program("rclone")
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "server").mkdir()
    with serving_s3(tmp_path / "server") as endpoint:
        make_bucket(endpoint, "tapes")
        url = f"s3://tapes/team?endpoint={endpoint}&region=us-east-1"
        with open_remote(url) as machine.remote:
            machine.push()
        config = {"TYPE": "s3", "PROVIDER": "Other", "ENDPOINT": endpoint, "ENV_AUTH": "true"}
        env = {f"RCLONE_CONFIG_BUCKET_{name}": value for name, value in config.items()}
        done = run(find_block("rclone"), **env, **KEYS)
    assert done.returncode == 0, done.stderr
    assert "2 tapes, 2 chunks" in done.stdout
    check_stores(machine, tmp_path / "work")


def test_the_compose_file_starts_what_the_tests_start():
    services = yaml.safe_load(find_block("compose.yaml"))["services"]
    assert services["postgres"]["environment"]["POSTGRES_USER"] == "tape"
    settings = services["s3"]["environment"]
    assert {"BIND_HOST", "GATEWAY_PORT", "IOT_MTLS_ENABLED"} == {*settings}
    for service in services.values():
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
