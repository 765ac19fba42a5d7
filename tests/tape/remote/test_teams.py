"""Many machines and one remote, for long: one wins each race, and all come to the same."""

from __future__ import annotations

import os
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.errors import NotFound, Overtaken, RemoteUnavailable, UsageError
from tape.history.merge_plan import build_merge_anchor, plan_merge
from tape.remote.cursor import Cursor
from tape.remote.merging import merge_chunks
from tape.remote.publish import Publisher
from tape.remote.push import Pusher
from tape.remote.registry import open_remote
from tests.tape import making
from tests.tape.making import BUDGET
from tests.tape.remote.machines import BreakingRemote, Machine
from tests.tape.unite.test_tapes import STEPS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

PUSHERS, ROUNDS = 16, int(os.environ.get("TAPE_ROUNDS", "10" if BUDGET == 1 else "300"))
STEPS_TAKEN = 1_000
DAY = 24 * 3600 * 1_000_000


def push(machine, tapes):
    with Cursor.open(machine.store.path, "team") as cursor:
        return [*Pusher(machine.store, machine.remote, cursor).push(tapes)]


def describe(store):
    """Return lines, heads, title and labels of every tape; each verifies."""
    state = {}
    for name in store.folders():
        with store.open_folder(name) as tape:
            assert [*verify(tape, Counts())] == []
            refs = tape.refs()
            heads = {branch: tape.head(branch).entry for branch in refs.branches}
            lines = {line[:48]: line for _, _, line in tape.phases.read_all_lines()}
            state[tape.id] = heads, refs.title, refs.labels, refs.current, lines
    return state


@pytest.mark.parametrize("address", ["folder", "s3", "postgresql"], indirect=True)
def test_one_of_sixteen_pushers_wins_each_round(tmp_path, address):
    """The others end on branches of their own, and nothing is lost (M213)."""
    with ExitStack() as stack, ThreadPoolExecutor(PUSHERS) as pool:
        machines = [
            Machine(tmp_path / f"m{number}", stack.enter_context(open_remote(address)))
            for number in range(PUSHERS)
        ]
        for turn in range(ROUNDS):
            with machines[0].store.create(making.beginning(str(turn))) as tape:
                making.write(tape, "hello")
                identity = tape.id
            push(machines[0], [identity])
            [*pool.map(Machine.pull, machines[1:])]
            written = []
            for machine in machines:
                with machine.store.open(identity) as tape:
                    written += [entry.id for entry in making.write(tape, "mine")]
            outcomes = [done for (done,) in pool.map(push, machines, [[identity]] * PUSHERS)]
            assert [done.error for done in outcomes if done.error] == []
            winners = [number for number, done in enumerate(outcomes) if not done.kept]
            assert len(winners) == 1
            ends = {done.kept[0].other for done in outcomes if done.kept}
            assert all(end.startswith("main.") for end in ends)
            machines[0].pull()
            with machines[0].store.open(identity) as tape:
                assert tape.head("main").entry == written[winners[0]]
                heads = {tape.head(branch).entry for branch in tape.refs().branches}
                assert heads == {*written}
        for machine in machines:
            machine.pull()
        assert describe(machines[0].store) == describe(machines[-1].store)


def merge(tape, chance):
    """Bring what another branch did into the current one."""
    others = [name for name in tape.refs().branches if name != tape.refs().current]
    if others:
        plan = plan_merge(tape, tape.head(), tape.head(chance.choice(others)))
        with tape.writer() as writer:
            writer.anchor(build_merge_anchor(tape, plan, "what it did", reason="a merge"))


class Team:
    """Machines, their tapes, and what must never be lost."""

    def __init__(self, machines, chance):
        self.machines, self.chance = machines, chance
        self.tapes, self.gone = set(), set()
        self.acknowledged = {}
        """Lines of each tape that a machine had once."""

    def step(self, machine):
        """Do something with a tape of a machine."""
        names = machine.store.folders()
        if not names or self.chance.random() < 0.02:
            slug = f"n{self.chance.randrange(10**6)}"
            with machine.store.create(making.beginning(slug)) as tape:
                making.write(tape, "one", "two")
                self.tapes.add(tape.id)
        else:
            with machine.store.open_folder(self.chance.choice(names)) as tape:
                self.chance.choice((*STEPS, merge))(tape, self.chance)

    def take_turn(self, machine):
        """Push, pull, take away, bring back, merge chunks, set the clock, or work."""
        names, chance = machine.store.folders(), self.chance
        match chance.randrange(14):
            case 0 | 1:
                done = push(machine, [machine.store.read_tape_id(name) for name in names])
                refuse_errors(done)
            case 2 | 3:
                refuse_errors(machine.pull())
            case 4:
                machine.store.clock.now += chance.choice((-DAY, DAY))
            case 5 if self.tapes and chance.random() < 0.5:
                merge_chunks(machine.remote, chance.choice(sorted(self.tapes)))
            case 6 if names and chance.random() < 0.3:
                with machine.store.open_folder(chance.choice(names)) as tape:
                    machine.store.remove(tape)
            case 7 if trashed := self.list_removed(machine):
                machine.store.restore(chance.choice(trashed))
            case 8 if names and self.count_idle() > 1:
                self.publish(machine, chance.choice(names))
            case 9 if names and chance.random() < 0.05:
                self.unpush(machine, machine.store.read_tape_id(chance.choice(names)))
            case _:
                self.step(machine)

    def publish(self, machine, name):
        """Write with barriers that wait for the remote, which another machine may overtake."""
        machine.store.projection = Publisher(machine.store, "team", lambda: machine.remote, None)
        try:
            with (
                suppress(Overtaken),
                machine.store.open_folder(name) as tape,
                tape.writer() as writer,
            ):
                for _ in range(3):
                    writer.append(making.say(f"published {self.chance.random()}"))
                    writer.barrier()
                    if self.chance.random() < 0.3:
                        self.work_beside()
        finally:
            machine.store.projection = None

    def count_idle(self):
        return sum(machine.store.projection is None for machine in self.machines)

    def work_beside(self):
        """Let another machine do something, while one writes."""
        idle = [at for at in self.machines if at.store.projection is None]
        with suppress(RemoteUnavailable):
            self.take_turn(self.chance.choice(idle))

    def unpush(self, machine, tape):
        with Cursor.open(machine.store.path, "team") as cursor:
            self.gone.add(tape)  # where it breaks off, some may have heard of it
            with suppress(NotFound, UsageError):
                Pusher(machine.store, machine.remote, cursor).unpush(tape, "a reason")

    def list_removed(self, machine):
        """Return the tapes in the trash that somebody removed there."""
        return [at.folder for at in machine.store.trash() if at.id not in self.gone]

    def note_lines(self, machine):
        for name in machine.store.folders():
            with machine.store.open_folder(name) as tape:
                lines = {line[:48] for _, _, line in tape.phases.read_all_lines()}
                self.acknowledged.setdefault(tape.id, set()).update(lines)

    def complete(self):
        """Let every machine push and pull all that there is."""
        for machine in self.machines:
            for name in self.list_removed(machine):
                machine.store.restore(name)
        for machine in (*self.machines, *self.machines):
            names = machine.store.folders()
            push(machine, [machine.store.read_tape_id(name) for name in names])
            machine.pull()
        for machine in self.machines:
            machine.pull()

    def read_lines(self, tape):
        """Return the lines of a tape on all machines, in their trash too."""
        lines = set()
        for machine in self.machines:
            for at in machine.store.trash():
                if at.id == tape:
                    machine.store.restore(at.folder)
            if machine.store.has(tape):
                with machine.store.open(tape) as opened:
                    lines |= {line[:48] for _, _, line in opened.phases.read_all_lines()}
        return lines


def refuse_errors(outcomes):
    """Fail for an error that is not about what somebody took away."""
    errors = [done.error for done in outcomes if done.error]
    taken = ("taken from the remote", "in the trash here")
    assert [error for error in errors if not any(text in error for text in taken)] == []


@pytest.mark.parametrize(
    ("address", "seed"),
    [*(("folder", seed) for seed in range(2 * BUDGET)), ("s3", 100), ("postgresql", 101)],
    indirect=["address"],
)
def test_three_machines_come_to_the_same_after_a_thousand_steps(tmp_path, address, seed):
    """M213: cut off, with clocks that are wrong by days, and tapes that are taken away."""
    chance = random.Random(seed)
    with open_remote(address) as opened:
        remote = BreakingRemote(opened)
        team = Team([Machine(tmp_path / name, remote) for name in ("one", "two", "three")], chance)
        for machine in team.machines:
            machine.store.open_tapes_folder().close()
        for _ in range(STEPS_TAKEN):
            machine = chance.choice(team.machines)
            remote.left = chance.randrange(12) if chance.random() < 0.3 else None
            with suppress(RemoteUnavailable):
                team.take_turn(machine)
            team.note_lines(machine)
        remote.left = None
        team.complete()
        states = [describe(machine.store) for machine in team.machines]
        for state in states:
            for tape in team.gone:
                state.pop(tape, None)
        assert states[0] == states[1] == states[2]
        assert {*states[0]} == team.tapes - team.gone
        for tape, lines in team.acknowledged.items():
            assert lines <= (team.read_lines(tape) if tape in team.gone else {*states[0][tape][4]})
