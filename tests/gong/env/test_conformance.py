"""Every environment passes one suite: this machine, memory, and the helper in several shells."""

from __future__ import annotations

import os
import shutil
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from gong.env.conformance import CASES, run_cases
from gong.env.local import LocalEnvironment
from gong.env.places.environment import PlaceEnvironment
from gong.env.places.link import Link

from .memory import MemoryEnvironment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from gong.env.conformance import Case, ExecutionEnvironment

SHELLS = {"dash": ("dash",), "bash": ("bash", "--posix"), "busybox": ("busybox", "sh")}


@asynccontextmanager
async def open_environment(kind: str, folder: str) -> AsyncIterator[ExecutionEnvironment]:
    environ = {"PATH": os.environ["PATH"], "HOME": folder, "TMPDIR": folder}
    env: ExecutionEnvironment
    if kind == "local":
        env = LocalEnvironment(folder, environ)
    elif kind == "memory":
        env = MemoryEnvironment(folder=folder)
    else:
        link = Link(f"sh:{kind}", lambda text: (*SHELLS[kind], "-c", text), environ)
        env = PlaceEnvironment(link, folder)
    await env.initialize()
    try:
        yield env
    finally:
        await env.cleanup()


async def check_kind(kind: str, folder: str, cases: list[Case]) -> None:
    if kind in SHELLS and shutil.which(SHELLS[kind][0]) is None:
        pytest.skip(f"{SHELLS[kind][0]} is not installed")
    async with open_environment(kind, folder) as env:
        results = [(case.name, wrong) async for case, wrong in run_cases(env, folder, cases)]
        assert len(results) == len(cases)
        assert [result for result in results if result[1]] == []


async def test_memory_does_what_the_suite_says(tmp_path: Path) -> None:
    """M122."""
    await check_kind("memory", str(tmp_path), [case for case in CASES if not case.need])


@pytest.mark.parametrize("kind", ["local", "dash"])
async def test_an_environment_does_what_a_sample_of_the_suite_says(
    kind: str, tmp_path: Path
) -> None:
    """M122."""
    await check_kind(kind, str(tmp_path), [*CASES[::9]])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["local", *SHELLS])
async def test_every_environment_does_what_the_suite_says(kind: str, tmp_path: Path) -> None:
    """M122."""
    await check_kind(kind, str(tmp_path), [*CASES])


def test_the_suite_has_its_size() -> None:
    assert len(CASES) >= 150
    assert len({case.name for case in CASES}) == len(CASES)
