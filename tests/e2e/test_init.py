"""`gong init`: a first AGENTS.md from what the project shows."""

import json

import pytest


def test_it_names_what_the_files_of_a_project_say(place):
    (place.folder / ".git").mkdir()
    (place.folder / "README.md").write_text("# Sand\n\n[![badge](x)](y)\n\nCounts grains.\n")
    (place.folder / "Makefile").write_text("PY := python\ntest: all\n\t@true\n.PHONY: test\n")
    (place.folder / "package.json").write_text(json.dumps({"scripts": {"lint": "x"}}))
    (place.folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\n[tool.ruff]\n")
    (place.folder / "go.mod").write_text("module sand\n")
    for name in ("src", "tests", "node_modules", ".hidden"):
        (place.folder / name).mkdir()
    shown = place.run("gong", "init", "--dry-run").stdout
    assert not (place.folder / "AGENTS.md").exists()
    place.run("gong", "init", cwd=place.folder / "src")
    text = (place.folder / "AGENTS.md").read_text()
    assert text == shown
    assert text == (
        "# Sand\n\nCounts grains.\n\n"
        "## Commands\n\n- `make test`\n- `npm run lint`\n- `pytest`\n"
        "- `ruff check .`\n- `go build ./...`\n- `go test ./...`\n- `go vet ./...`\n\n"
        "## Layout\n\n- `src/`\n- `tests/`\n\n"
        "## Conventions\n\n(Say here what a newcomer has to know.)\n"
    )


@pytest.mark.parametrize(
    ("readme", "metadata", "begins"),
    [
        (
            "[![b](x)](y)\n# [Sand](z)\nCounts grains\nof sand.\n## Use\n",
            "[project]\nname = 'sand-box'\ndescription = 'Grains, counted'\n",
            "# Sand\n\nGrains, counted\n\nCounts grains of sand.\n\n## ",
        ),
        ("Sand\n====\nCounts.\n", "", "# Sand\n\nCounts.\n\n## "),
        (
            "",
            "[project]\nname = 'sand-box'\ndescription = 'Grains, counted'\n",
            "# sand-box\n\nGrains, counted\n\n## ",
        ),
        ("", "[tool.poetry]\nname = 'sand'\ndescription = 1\n", "# sand\n\n## "),
        ("Counts.\n\n# Later\n", "[project]\nname = 'sand'\n", "# sand\n\nCounts.\n\n## "),
        ("\ufeff# Sand\n\nCounts.\n", "", "# Sand\n\nCounts.\n\n## "),
        ("", "", "# work\n\n## "),
    ],
)
def test_title_and_introduction_are_those_of_the_project(place, readme, metadata, begins):
    (place.folder / "README.md").write_text(readme)
    (place.folder / "pyproject.toml").write_text(metadata)
    assert place.run("gong", "init", "--dry-run").stdout.startswith(begins)


def test_a_file_that_is_there_is_never_changed(place):
    (place.folder / "AGENTS.md").write_text("mine\n")
    refused = place.run("gong", "init", code=2)
    assert "is there already" in refused.stderr
    assert (place.folder / "AGENTS.md").read_text() == "mine\n"


def test_broken_files_say_nothing(place):
    (place.folder / "package.json").write_text("{")
    (place.folder / "pyproject.toml").write_bytes(b"\xff[[")
    (place.folder / "Makefile").mkdir()
    place.run("gong", "init")
    assert "## Commands" not in (place.folder / "AGENTS.md").read_text()
