"""The tests of stores, tapes, writers, properties and faults hold where tapes are at a remote."""

import os
import subprocess
import sys

import pytest

from tests.tape.making import BUDGET
from tests.tape.remote import elsewhere

SAMPLE = ["tests/tape/store/test_tape.py"]
STORES = ["tests/tape/store", "tests/properties"]
LOCAL_FAULTS = {"cuts": "it takes back entries that a barrier acknowledged, at any byte"}
LOCAL_FAULTS["mending"] = LOCAL_FAULTS["cuts"]
"""Files of fault tests that mean a store of this machine alone → why."""
OF_PROGRAMS = {"every_kill", "kills_of_checkpoints", "power_loss"}
"""They kill programs, which have no remote: one engine is enough for what is around those."""
FAULTS = sorted(
    path.stem.removeprefix("test_")
    for path in (elsewhere.ROOT / "tests/faults").glob("test_*.py")
    if path.stem.removeprefix("test_") not in LOCAL_FAULTS
)
ENGINES = ("folder", "s3", "postgresql", "git")
EXCLUDED = {
    "TestATornTail and goes_to_quarantine": "it takes back an entry that a barrier acknowledged",
    "a_file_with_something_else_stays": "so does this",
    "a_copy_opens_a_phase_and_the_original_continues": "its two copies write with one remote",
    "TestRunsThatRepeat": "it compares all files, and one names the remote",
    "TestTime and always_increases": "its clock has no time left for a push",
}
"""Tests that mean a store of this machine alone → why."""


def run_tests(engine, paths, *, is_slow=False):
    """Run tests over an engine, and return how many tapes were the same there."""
    chosen = " and ".join(f"not ({one})" for one in EXCLUDED)
    words = ["-q", "-x", "-p", elsewhere.__name__, "-p", "no:cacheprovider", "-k", chosen]
    words += [] if is_slow else ["-m", "not slow"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, *paths],
        env={**os.environ, "TAPE_ENGINE": engine},
        cwd=elsewhere.ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr
    return int(done.stdout.splitlines()[-1].split()[0])


def test_a_sample_of_them_holds_in_a_folder():
    """M205: a store whose tapes are elsewhere is the same store."""
    assert run_tests("folder", SAMPLE) > 5


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("engine", ENGINES)
def test_those_of_the_store_hold_over_every_engine(engine):
    """M205: so it is in a bucket, in tables and in a repository."""
    assert run_tests(engine, STORES, is_slow=BUDGET > 1) > 190


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    ("engine", "name"),
    [(at, name) for at in ENGINES for name in FAULTS if at == "folder" or name not in OF_PROGRAMS],
)
def test_those_of_faults_hold_over_every_engine(engine, name):
    """M205: and nothing that is killed, cut off or without room breaks it there."""
    run_tests(engine, [f"tests/faults/test_{name}.py"], is_slow=True)
