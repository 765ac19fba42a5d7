"""Places on this machine for tests: a server of ssh, containers of podman, pods of Kubernetes."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from gong.config import PlaceSettings
from gong.env.places.opening import choose_place, open_place
from gong.env.variables import VariableRules

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from gong.env.places.environment import PlaceEnvironment

needs_sshd = pytest.mark.skipif(
    not Path("/usr/sbin/sshd").exists() or os.geteuid() != 0, reason="sshd is not installed"
)
_RULES = VariableRules()
ENVIRON = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "MY_TOKEN": "secret-1"}


def make_table(table: Mapping[str, object]) -> PlaceSettings:
    return msgspec.convert(dict(table), PlaceSettings)


@asynccontextmanager
async def open_table(
    table: Mapping[str, object], rules: VariableRules = _RULES
) -> AsyncIterator[PlaceEnvironment]:
    env = await open_place(choose_place("box", {"box": make_table(table)}), "/", ENVIRON, rules)
    try:
        yield env
    finally:
        await env.cleanup()


@contextmanager
def run_sshd(folder: Path) -> Iterator[dict[str, str]]:
    """Run a server of ssh on loopback with keys of its own; yield the table of its place."""
    for name in ("host", "user"):
        argv = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name))
        subprocess.run(argv, check=True)
    Path("/run/sshd").mkdir(exist_ok=True)
    port = find_free_port()
    (folder / "keys").write_bytes((folder / "user.pub").read_bytes())
    (folder / "sshd.conf").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nUsePAM no\nStrictModes no\n"
        f"AuthorizedKeysFile {folder}/keys\nPermitRootLogin yes\nPidFile none\n"
    )
    kind, key, *_ = (folder / "host.pub").read_text().split()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {kind} {key}\n")
    (folder / "ssh.conf").write_text(
        f"IdentityFile {folder}/user\nUserKnownHostsFile {folder}/known\n"
    )
    server = subprocess.Popen(
        ("/usr/sbin/sshd", "-D", "-e", "-f", str(folder / "sshd.conf")), stderr=subprocess.PIPE
    )
    assert server.stderr is not None
    try:
        while b"listening" not in (line := server.stderr.readline()):
            assert line, "sshd ended"
        yield {
            "place": f"ssh://127.0.0.1:{port}",
            "program": ["ssh", "-F", str(folder / "ssh.conf")],
        }
    finally:
        server.terminate()
        server.communicate()


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


CONTAINERS = """[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
netns = "none"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
"""
"""What podman needs where the limits of this machine cannot be raised."""


@contextmanager
def keep_containers(folder: Path) -> Iterator[list[str]]:
    """Hold a store of podman, which is removed; yield the program with its first arguments."""
    short = tempfile.mkdtemp(prefix="gp-")  # podman takes no long path
    settings = folder / "containers.conf"
    settings.write_text(CONTAINERS)
    podman = ["env", f"CONTAINERS_CONF={settings}", "podman"]
    podman += ["--root", f"{short}/store", "--runroot", f"{short}/run"]
    try:
        yield podman
    finally:
        subprocess.run((*podman, "rm", "-f", "-a", "-t", "0"), capture_output=True, check=False)
        shutil.rmtree(short, ignore_errors=True)


def make_root(root: Path) -> None:
    """Make the files of a system that has busybox only."""
    for name in ("bin", "tmp", "proc", "dev", "sys", "etc", "run", "srv/app"):
        (root / name).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin/busybox")
    listed = subprocess.run(("/bin/busybox", "--list"), capture_output=True, text=True, check=True)
    for applet in listed.stdout.split():
        if applet != "busybox":
            (root / "bin" / applet).symlink_to("busybox")


def import_image(podman: list[str], root: Path) -> None:
    """Make an image `box:1` of a system's files."""
    pack = subprocess.Popen(("tar", "c", "-C", root, "."), stdout=subprocess.PIPE)
    assert pack.stdout is not None
    argv = (*podman, "import", "-q", "-", "box:1")
    subprocess.run(argv, stdin=pack.stdout, stdout=subprocess.DEVNULL, check=True)
    assert pack.wait() == 0
    pack.stdout.close()


@contextmanager
def run_container(folder: Path, *options: str) -> Iterator[dict[str, object]]:
    """Run a container of busybox with podman; yield the table of its place."""
    make_root(folder / "rootfs")
    name = f"gong-test-{os.getpid()}"
    with keep_containers(folder) as podman:
        argv = (*podman, "run", "-d", "--name", name, *options)
        argv = (*argv, "--rootfs", str(folder / "rootfs"), "sleep", "4000")
        started = subprocess.run(argv, capture_output=True, check=False)
        if started.returncode:
            pytest.skip(f"podman cannot run containers here: {started.stderr.decode()[-200:]}")
        yield {"place": f"docker:{name}", "program": podman}


@contextmanager
def serve_docker(podman: list[str], folder: Path) -> Iterator[list[str]]:
    """Let podman answer as docker does; yield docker with the arguments that lead there."""
    short = tempfile.mkdtemp(prefix="gd-", dir=folder)
    address = f"unix://{short}/s"
    with (folder / "service.log").open("wb") as log:
        service = subprocess.Popen(
            (*podman, "system", "service", "--time=0", address), stdout=log, stderr=log
        )
        try:
            docker = ["docker", "-H", address]
            ask = (*docker, "version")
            end = time.monotonic() + 60
            while subprocess.run(ask, capture_output=True, check=False).returncode:
                assert service.poll() is None, (folder / "service.log").read_text()
                assert time.monotonic() < end, "the service does not answer"
                time.sleep(0.1)
            yield docker
        finally:
            service.terminate()
            service.wait()


needs_podman = pytest.mark.skipif(
    not (shutil.which("podman") and shutil.which("runc") and Path("/bin/busybox").exists())
    or os.geteuid() != 0,
    reason="podman, runc and busybox-static are not installed",
)
needs_docker = pytest.mark.skipif(
    shutil.which("docker") is None, reason="docker's command line is not installed"
)
needs_kubectl = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="kubectl is not installed"
)
