"""Random sessions: what is kept between calls is what all entries, folded anew, give."""

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from gong.agent.recorder import Recorder
from gong.agent.run_context import RunState
from gong.context.trim import elide_results
from tape.context.repair import repair
from tape.context.view import view
from tape.model.entries import Assistant, Error, Text, Usage
from tape.store.maintenance.upkeep import redact
from tests.properties.test_compaction import DEEDS, Play
from tests.tape import making
from tests.tape.making import BUDGET


class Game(Play):
    """A session whose requests are asked for now and then, with a fold that is kept."""

    def __init__(self):
        super().__init__()
        self.state = RunState()
        self.asked = []
        """Messages as they were asked for, and a copy made then."""

    def counted(self, size):
        usage = Usage(input=size, output=1, total=size + 1)
        name = f"m-{self.api}"
        self.add(
            Assistant(
                (Text("so"),), self.api, self.api, f"https://{self.api}", name, "stop", usage=usage
            )
        )

    def stopped(self, size):
        self.add(Error("Aborted", "stopped by the user"))

    def mended(self, size):
        """What was repaired is recorded, as before each call."""
        found = self.parts(self.state).prepare_next_call().history.unrecorded
        if found is not None:
            self.add(found)

    def neighbour(self, size):
        """Another process writes to a branch of its own, from here or from earlier."""
        (folder,) = making.store_in(self.home).folders()
        with making.store_in(self.home).open_folder(folder) as tape:
            past = tape.entries(self.record.head())
            branch = tape.fork(making.at(tape, past[-1 - size % len(past)].id))
            making.write(tape, f"beside {size}", branch=branch)

    def redacted(self, size):
        """The branch is closed, something said on it is overwritten, and it is opened again."""
        tape, branch = self.record.tape, self.record.branch
        said = [one for one in tape.entries(self.record.head()) if one.type in SAID]
        if not said:
            return
        self.record.writer.close()
        redact(tape, [said[size % len(said)].id], "why")
        self.record = Recorder.open(tape, branch, durability="none")
        self.before.clear()

    def compaction(self, size):
        self.before.clear()  # what was there may have been overwritten
        super().compaction(size)

    def check(self):
        kept, anew = self.parts(self.state).prepare_next_call(), self.parts().prepare_next_call()
        target = self.parts().setup.model.target
        seen = view(self.record.path, self.record.kept)
        whole = repair(seen, target)
        sent = elide_results(whole.messages, (*seen.kept, *seen.entries))
        self.asked.append((kept.request.messages, sent))
        assert (tuple(kept.request.messages), kept.repair) == (sent, whole.repair)
        assert tuple(anew.request.messages) == sent
        assert anew.history.unrecorded == kept.history.unrecorded
        assert anew.measure() == kept.measure()
        bounds = {one.history.size.compute_bound(one.request) for one in (kept, anew)}
        (bound,) = bounds
        assert bound >= kept.measure().tokens


SAID = {"user", "assistant", "tool.result"}
ASIDES = ("counted", "counted", "stopped", "mended", "mended", "neighbour", "redacted", "aside")


@settings(
    max_examples=40 * BUDGET,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    st.lists(
        st.tuples(st.sampled_from((*DEEDS, *ASIDES)), st.integers(0, 120), st.booleans()),
        min_size=5,
        max_size=40,
    )
)
def test_what_is_kept_between_calls_equals_a_fresh_fold_of_all_entries(deeds):
    game = Game()
    try:
        game.prompt(3)
        for name, size, is_asked in deeds:
            getattr(game, name)(size)
            if is_asked:
                game.check()
                event(name)
        game.check()
        for messages, copy in game.asked:
            assert tuple(messages) == copy
    finally:
        game.close()
