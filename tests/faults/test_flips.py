"""Any byte of entries, journal or blobs changed: verify names file and line, fsck explains it."""

import functools

import pytest

from tape.check.explain import explain_finding
from tape.check.finding import Counts
from tape.check.inspection import inspect_tape
from tape.check.repair_plan import describe_action, plan_repairs
from tape.check.verify import verify
from tape.store.refs import JOURNAL_NAME
from tests.faults.histories import small
from tests.tape.making import BUDGET

STEP = 11 if BUDGET == 1 else 1
"""Every so many bytes of a file are changed."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return small(tmp_path_factory.mktemp("flips") / "store")


def history(made):
    """Yield (tape, file) of everything whose bytes a hash vouches for."""
    for identity in (made.tape, made.child):
        folder = made.folder(identity)
        names = [
            *folder.glob("phases/*/entries.jsonl"),
            folder / JOURNAL_NAME,
            *folder.glob("blobs/*/*"),
        ]
        yield from ((identity, path) for path in sorted(names))


def flips(whole, step):
    """Yield a place and the bytes with that one changed, each time by another mask."""
    for at in range(0, len(whole), step):
        changed = bytearray(whole)
        changed[at] ^= at * 37 % 255 + 1
        yield at, bytes(changed)


@pytest.mark.slow
def judged(made, identity):
    """Return what verify finds, each finding with its explanation, and what mending would do."""
    with made.store.open(identity) as tape:
        findings = list(verify(tape, Counts()))
        seen = inspect_tape(made.store, tape, findings)
        means = [explain_finding(finding, seen) for finding in findings]
        actions = [describe_action(action) for action in plan_repairs(findings, seen)]
    return [finding for finding in findings if finding.level != "note"], means, actions


def test_every_flipped_byte_is_named_and_explained(made):
    looked = 0
    for identity, path in history(made):
        whole, name = path.read_bytes(), str(path.relative_to(made.folder(identity)))
        step = STEP if len(whole) < 10_000 else 997 * STEP
        for at, changed in flips(whole, step):
            path.write_bytes(changed)
            bad, means, _ = judged(made, identity)
            line = None if name.startswith("blobs") else whole.count(b"\n", 0, at) + 1
            assert (name, line) in [(one.file, one.line) for one in bad], (name, at, bad)
            assert all(one.what and one.lost and one.todo for one in means)
            looked += 1
        path.write_bytes(whole)
    assert looked > 300
    assert [judged(made, identity)[0] for identity in (made.tape, made.child)] == [[], []]


def test_entries_on_a_damaged_line_are_named_with_their_children(made):
    folder = made.folder(made.tape)
    path = folder / "phases/0001-main-start/entries.jsonl"
    whole = path.read_bytes()
    try:
        path.write_bytes(whole.replace(b'"one"', b'"One"'))
        (finding,), (means,), actions = judged(made, made.tape)
    finally:
        path.write_bytes(whole)
    assert (finding.line, finding.depends, means.tapes) == (2, ("main", "side"), (made.child,))
    start = whole[7:19].decode()
    assert means.todo.endswith(
        f"continue from before it: `tape fork {made.tape[:8]}@{start} --switch`"
    )
    assert actions == []


def test_a_damaged_end_is_distinguished_from_damage_further_up(made):
    path = made.folder(made.tape) / "phases/0002-side/entries.jsonl"
    whole = path.read_bytes()
    explained = functools.partial(judged, made, made.tape)
    try:
        path.write_bytes(whole.replace(b'"aside"', b'"bside"'))
        (_, (middle,), nothing) = explained()
        path.write_bytes(whole.replace(b'"more"', b'"less"'))
        (_, means, actions) = explained()
    finally:
        path.write_bytes(whole)
    assert (middle.todo.startswith("it is not changed"), nothing) == (True, [])
    assert "no good line follows it" in means[0].what
    assert actions == []  # the child tape goes on from that entry: nothing is moved under it
