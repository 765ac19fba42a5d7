import pytest

from tape.errors import Damaged, InvalidName, NotFound, UsageError
from tape.store import refs as branches
from tape.store.refs import Refs, check_ref_name
from tests.tape import making, reader


def append_to(file, data):
    with file.open("ab") as opened:
        opened.write(data)


@pytest.fixture
def prompts(tape):
    return making.write(tape, "one", "two", "three")


class TestAHead:
    def test_is_the_last_whole_line_of_its_phase(self, tape, folder, prompts):
        head = tape.head()
        file = folder / "phases/0001-main-start/entries.jsonl"
        assert head.entry == prompts[-1].id == reader.heads(folder)["main"]
        assert (head.branch, head.phase, head.pinned, head.torn) == (
            "main",
            file.parent.name,
            False,
            0,
        )
        assert file.read_bytes()[head.offset : head.end].endswith(b"}\n")
        assert head.end == file.stat().st_size

    def test_is_before_a_torn_tail_and_says_how_long_that_is(self, tape, folder, prompts):
        before = tape.head()
        append_to(folder / "phases/0001-main-start/entries.jsonl", b"torn")
        assert tape.head() == before._replace(torn=4)

    def test_is_the_pinned_entry_of_a_fork(self, tape, prompts):
        base = making.at(tape, prompts[0].id)
        tape.fork(base, "b")
        assert tape.head("b") == base._replace(branch="b", pinned=True)

    def test_of_moves_ago(self, tape, prompts):
        tape.fork(making.at(tape, prompts[0].id), "b")
        making.write(tape, "four", branch="b")
        assert tape.head("b", moves_ago=1).entry == prompts[0].id
        with pytest.raises(NotFound, match="has moved 2 times, not 3"):
            tape.head("b", moves_ago=2)

    def test_of_an_unknown_branch_among_many_names_those_most_like_it(self, tape):
        for number in range(20):
            tape.fork(tape.head("main"), f"try-{number}")
        with pytest.raises(NotFound) as refused:
            tape.head("try-100")
        assert str(refused.value).endswith(
            "there are: try-10, try-1, try-0, try-19, try-18 and 16 more"
        )
        with pytest.raises(
            NotFound, match="there are: main, try-0, try-1, try-2, try-3 and 16 more"
        ):
            tape.head("北京")

    def test_of_an_unknown_branch_names_those_there_are(self, tape):
        with pytest.raises(NotFound, match="no branch 'x'; there are: main"):
            tape.head("x")

    def test_is_damage_when_another_entry_is_at_its_pin(self, tape, folder, prompts):
        tape.fork(making.at(tape, prompts[0].id), "b")
        file = folder / "phases/0001-main-start/entries.jsonl"
        data = file.read_bytes()
        file.write_bytes(data.replace(prompts[0].id.encode(), prompts[1].id.encode(), 1))
        with pytest.raises(Damaged):
            tape.head("b")

    def test_is_damage_when_its_phase_holds_no_good_line(self, tape, folder):
        (folder / "phases/0001-main-start/entries.jsonl").write_bytes(b"")
        with pytest.raises(Damaged, match="no valid entry"):
            tape.head()


class TestAFork:
    def test_at_every_entry_sees_the_past_up_to_there(self, tape, folder, prompts):
        path = making.entries(tape)
        for k, entry in enumerate(path):
            name = tape.fork(making.at(tape, entry.id), f"at-{k}")
            assert making.entries(tape, name) == path[: k + 1]
        assert reader.faults(folder) == []

    def test_shows_each_side_its_own_and_never_changes_old_bytes(self, tape, folder, prompts):
        before = reader.files(folder)
        tape.fork(making.at(tape, prompts[1].id), "b")
        making.write(tape, "left", branch="b")
        making.write(tape, "right", branch="main")
        assert making.texts(tape, "b") == ["one", "two", "left"]
        assert making.texts(tape, "main") == ["one", "two", "three", "right"]
        after = reader.files(folder)
        assert all(after[name].startswith(data) for name, data in before.items())
        assert reader.faults(folder) == []

    def test_costs_one_line_at_any_size(self, store):
        costs = []
        for size in (1, 300):
            with store.create(making.beginning()) as tape:
                prompts = making.write(tape, *map(str, range(size)))
                folder = making.folder_of(store, tape)
                before = reader.files(folder)
                tape.fork(making.at(tape, prompts[0].id), "b")
                after = reader.files(folder)
                costs.append(
                    {k: len(v) - len(before[k]) for k, v in after.items() if v != before[k]}
                )
        assert costs[0] == costs[1]
        assert list(costs[0]) == ["refs.jsonl"]
        assert costs[0]["refs.jsonl"] < 1024

    def test_of_a_fork_of_a_fork(self, tape, folder, prompts):
        for name, below in (("b", "main"), ("c", "b"), ("d", "c")):
            tape.fork(tape.head(below), name)
            making.write(tape, name, branch=name)
        assert making.texts(tape, "d") == ["one", "two", "three", "b", "c", "d"]
        assert reader.faults(folder) == []

    def test_gets_a_name_when_it_is_given_none(self, tape):
        assert [tape.fork(tape.head()) for _ in range(3)] == ["fork-1", "fork-2", "fork-3"]

    def test_may_become_the_current_branch(self, tape, folder):
        tape.fork(tape.head(), "b", switch=True)
        assert (tape.refs().current, reader.current(folder)) == ("b", "b")

    def test_with_a_name_that_is_taken_is_refused(self, tape, folder):
        before = reader.files(folder)
        with pytest.raises(UsageError, match="'main' already exists"):
            tape.fork(tape.head(), "main")
        assert reader.files(folder) == before

    @pytest.mark.parametrize("name", ["../../x", "refs", "", "A", "a..b"])
    def test_with_a_name_that_may_not_be_a_path_is_refused(self, tape, folder, name):
        before = reader.files(folder)
        with pytest.raises(InvalidName):
            tape.fork(tape.head(), name)
        assert reader.files(folder) == before

    def test_at_an_entry_of_another_tape_is_refused(self, store, tape, folder):
        with store.create(making.beginning(), origin=(tape, tape.head())) as child:
            making.write(tape, "one")
            with pytest.raises(Damaged):
                child.fork(tape.head(), "b")
            assert list(child.refs().branches) == ["main"]


class TestSwitching:
    def test_changes_what_the_bare_tape_means(self, tape, folder):
        tape.fork(tape.head(), "b")
        tape.switch("b")
        assert tape.head().branch == "b"
        size = (folder / "refs.jsonl").stat().st_size
        tape.switch("b")
        assert (folder / "refs.jsonl").stat().st_size == size

    def test_to_an_unknown_branch_is_refused(self, tape):
        with pytest.raises(NotFound, match="no branch 'x'"):
            tape.switch("x")


@pytest.mark.parametrize("stem", ["main", "a.", "a" * 48, "a" * 39 + ".bc", "a" * 38 + ".-."])
@pytest.mark.parametrize("separator", [".", "-"])
def test_a_name_made_from_another_may_be_a_path(stem, separator):
    refs, made = Refs({}, {}), []
    for _ in range(3):
        made.append(check_ref_name("branch", branches.choose_branch_name(refs, stem, separator, 2)))
        refs.branches[made[-1]] = []
    assert len(set(made)) == 3
