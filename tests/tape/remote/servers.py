"""Real servers for remotes, on loopback, each ended by its own process id."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import HTTPError

import pytest

BIN = Path(sys.executable).parent
KEYS = {"AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": "secret-of-someone"}
S3RVER = os.environ.get("TAPE_S3RVER", "")
"""The folder into which npm installed s3rver; .ci/run does."""


def find_free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def find_program(name):
    """Return the path of a program of the development tools; skip where it is not installed."""
    path = BIN / name
    if not path.exists():
        pytest.skip(f"{name} is not installed: make test installs it")
    return path


@contextmanager
def serving(command, port, **options):
    """Run a server and yield when it accepts connections."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **options,
    ) as server:
        try:
            while not accepts(port):
                assert server.poll() is None, f"{command[0]} ended with {server.returncode}"
                time.sleep(0.05)
            yield
        finally:
            server.send_signal(signal.SIGINT)
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()


def accepts(port):
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0


def request(method, url):
    """Send a request without a signature: none of these servers asks for one."""
    with urllib.request.urlopen(urllib.request.Request(url, method=method)) as answer:
        return answer.read()


@contextmanager
def serving_ministack(folder):
    """Yield the endpoint of the S3 server whose conditional writes are right."""
    port = find_free_port()
    env = {
        **os.environ,
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "IOT_MTLS_ENABLED": "0",  # it would listen on all addresses
        "HOME": str(folder),
        "TMPDIR": str(folder),
    }
    endpoint = f"http://127.0.0.1:{port}"
    with serving([find_program("ministack")], port, env=env, cwd=folder):
        yield endpoint


@contextmanager
def serving_localbucket(folder):
    """Yield the endpoint of an S3 server that knows If-None-Match, and ignores If-Match."""
    port = find_free_port()
    with serving([find_program("localbucket"), "--port", str(port), folder], port, cwd=folder):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def serving_rclone(folder):
    """Yield the endpoint of an S3 server that ignores conditions."""
    port = find_free_port()
    keys = ",".join(KEYS.values())
    words = ["serve", "s3", "--addr", f"127.0.0.1:{port}", "--auth-key", keys, str(folder)]
    config = ["--config", str(folder / "none.conf"), "--cache-dir", str(folder / ".cache")]
    with serving([find_program("rclone"), *words, *config], port, cwd=folder):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def serving_s3rver(folder):
    """Yield the endpoint of an S3 server that ignores conditions, and counts no signatures."""
    script, node = Path(S3RVER, "node_modules/s3rver/bin/s3rver.js"), shutil.which("node")
    if not S3RVER or node is None or not script.exists():
        pytest.skip("TAPE_S3RVER names no folder with npm's s3rver: .ci/run installs it")
    port = find_free_port()
    words = ["-d", str(folder), "-p", str(port), "-a", "127.0.0.1", "-s"]
    with serving([node, script, *words], port, cwd=folder):
        yield f"http://127.0.0.1:{port}"


def make_bucket(endpoint, name):
    """Create a bucket, or leave it as it is."""
    try:
        request("PUT", f"{endpoint}/{name}")
    except HTTPError as error:
        if error.code != 409:
            raise


@contextmanager
def serving_postgres():
    """Yield the port of a PostgreSQL server; everybody on loopback is its user `tape`.

    Its files are outside of pytest's folders, which only their owner may enter.
    """
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    initdb = shutil.which("initdb") or (found and found[-1])
    if not initdb:
        pytest.skip("PostgreSQL is not installed")
    programs = Path(initdb).resolve().parent
    user = None
    if os.geteuid() == 0:  # the server refuses to run as root
        user = next((one.pw_name for one in pwd.getpwall() if one.pw_name == "postgres"), "nobody")
    with TemporaryDirectory(prefix="tape-postgres-") as folder:
        if user is not None:
            shutil.chown(folder, user)
        data, port = f"{folder}/data", find_free_port()
        subprocess.run(
            [programs / "initdb", "-D", data, "-U", "tape", "-A", "trust", "--no-sync"],
            check=True, capture_output=True, user=user, cwd=folder,
        )  # fmt: skip
        words = ["-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", folder, "-F"]
        with serving([programs / "postgres", *words], port, user=user, cwd=folder):
            asking = [programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
            while subprocess.run(asking, check=False).returncode:  # it accepts before it answers
                time.sleep(0.05)
            yield port
