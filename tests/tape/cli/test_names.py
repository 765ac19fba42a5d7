"""`tape rename`, `label` and `anchors`."""

from __future__ import annotations

import pytest

from tape.index.library import open_store
from tape.model.entries import Anchor, CoveredRange, KeptRange, Summary, Tokens
from tests.tape.cli.conftest import line


class TestRename:
    def test_gives_a_title_and_says_the_old_one(self, tape, talk):
        assert tape("rename", talk, "Login bug").text == (
            f'{talk[:8]}: renamed to "Login bug" (was "First")\n'
        )
        made = tape("rename", talk, " 日本 ", "--json").json
        assert made == {"tape": talk, "title": "日本", "was": "Login bug"}
        assert tape("ls", "--json").json[0]["title"] == "日本"

    def test_keeps_the_folder(self, tape, talk):
        before = tape.folder(talk)
        tape("rename", talk, "Other")
        assert tape.folder(talk) == before

    def test_wants_a_word_and_a_tape(self, tape, talk):
        assert "needs a word" in tape.refused("rename", talk, "  ", code=2)
        assert tape.refused("rename", talk, code=2)
        assert tape.refused("rename", "abcdef", "x", code=3)


class TestLabel:
    def test_names_an_entry_that_a_ref_can_mean(self, tape, talk):
        entry = tape("log", talk, "--json").json[1]["id"]
        made = tape("label", f"{talk}@{entry[:8]}", "asked", "--json").json
        assert made == {"tape": talk, "label": "asked", "entry": entry, "was": None}
        assert tape("show", f"{talk}@asked", "--json").json["id"] == entry
        assert tape("label", talk, "--json").json == [{"label": "asked", "entry": entry}]
        assert tape("label", talk).text == f"LABEL  ENTRY\nasked  {entry[:8]}\n"

    def test_of_a_tape_names_the_entry_at_its_head(self, tape, talk):
        head = tape("branches", talk, "--json").json[0]["entry"]
        assert tape("label", talk, "good").text == f"{talk[:8]}@good is now {head[:8]}\n"

    def test_that_moves_says_how_it_goes_back(self, tape, talk):
        before = tape("label", f"{talk}~1", "good", "--json").json["entry"]
        said = tape("label", talk, "good").text
        undo = f"tape label {talk[:8]}@{before[:8]} good"
        assert said.endswith(f"(was {before[:8]}); `{undo}` undoes it\n")
        tape(*undo.split()[1:])
        assert tape("label", talk, "--json").json[0]["entry"] == before

    def test_can_be_taken_away_and_given_back(self, tape, talk):
        tape("label", talk, "good")
        said = tape("label", talk, "--delete", "good").text
        assert tape("label", talk, "--json").json == []
        tape(*said.split("`")[1].split()[1:])
        assert len(tape("label", talk, "--json").json) == 1

    def test_that_is_not_there_cannot_be_taken_away(self, tape, talk):
        assert "it has no labels" in tape.refused("label", talk, "--delete", "gone", code=3)
        tape("label", talk, "good")
        assert "there are: good" in tape.refused("label", talk, "--delete", "gone", code=3)
        assert tape.refused("label", talk, "x", "--delete", "good", code=2)

    def test_that_looks_like_an_id_is_warned_about(self, tape, talk):
        assert "ids are tried first" in tape("label", talk, "beef").err

    @pytest.mark.parametrize("name", ["../", "refs", "试"])
    def test_name_is_checked(self, tape, talk, name):
        assert "is not allowed" in tape.refused("label", talk, name, code=2)

    def test_on_a_damaged_journal_is_refused(self, tape, talk):
        path = tape.folder(talk) / "refs.jsonl"
        path.write_bytes(path.read_bytes().replace(b'"current":"main"', b'"current":"mine"'))
        assert "nothing was written" in tape("label", talk, "good", code=4).err


@pytest.fixture
def compacted(tape, talk):
    """A tape with an anchor and a fork behind it: ids of the tape and of the anchor."""
    store = open_store(tape.store).store
    with store.open(talk) as opened, opened.writer() as writer:
        first, last = "1" * 40, "2" * 40
        anchor = writer.anchor(
            Anchor(
                kind="compaction",
                summary=Summary(goal="Read\x1b[31m a.py", done=("one", "two", "three")),
                kept=(KeptRange("0001-main-start", 0, 2, first, last),),
                covers=CoveredRange(first, last, 4),
                tokens=Tokens(900, 90),
                reason="window",
            )
        )
    tape("fork", f"{talk}~1", "--name", "side")
    tape("append", f"{talk}:side", stdin=line("note", text="side"))
    return talk, anchor.id


class TestAnchors:
    def test_are_the_phases_with_the_first_lines_of_their_summaries(self, tape, compacted):
        tape_id, anchor = compacted
        rows = tape("anchors", tape_id).text.split("\n")
        assert rows[0].startswith("0001-main-start · start · ")
        assert rows[0].endswith(" · 6 entries")
        assert rows[1].startswith("0002-main-compaction · compaction · ")
        assert rows[1].endswith(
            f" · {anchor[:8]} · 1 entry · covers 4 entries · keeps 2 · 900 → 90 tokens · window"
        )
        assert rows[2:6] == [
            "    ## Goal",
            "    Read␛[31m a.py",
            "    ## Done",
            "    … 3 more lines",
        ]
        assert rows[6].startswith("0003-side · continued · ")

    def test_are_whole_as_json(self, tape, compacted):
        tape_id, anchor = compacted
        start, compaction, side = tape("anchors", tape_id, "--json").json
        assert list(start) == [
            *("tape", "phase", "branch", "kind", "entry", "time", "entries", "base", "covers"),
            *("tokens", "by", "reason", "kept", "summary", "error"),
        ]
        assert (compaction["entry"], compaction["kind"]) == (anchor, "compaction")
        assert compaction["summary"].endswith("- three")
        assert compaction["covers"]["count"] == 4
        assert (side["branch"], side["kind"], side["summary"]) == ("side", "go-on", None)

    def test_of_a_branch_are_those_on_its_path(self, tape, compacted):
        def phases(ref):
            return [start["phase"] for start in tape("anchors", ref, "--json").json]

        assert phases(f"{compacted[0]}:main") == ["0001-main-start", "0002-main-compaction"]
        assert phases(f"{compacted[0]}:side") == ["0001-main-start", "0003-side"]

    def test_of_a_child_lead_into_its_origin(self, tape, compacted):
        child = tape("fork", f"{compacted[0]}:main", "--new", "--json").json["tape"]
        starts = tape("anchors", f"{child}:main", "--json").json
        assert [start["tape"] for start in starts] == [compacted[0], compacted[0], child]

    def test_that_cannot_be_read_are_named(self, tape, compacted):
        (tape.folder(compacted[0]) / "phases/0003-side/entries.jsonl").write_bytes(b"")
        assert "0003-side: it has no valid entry" in tape("anchors", compacted[0]).text
