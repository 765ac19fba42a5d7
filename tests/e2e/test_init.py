"""`gong init`: a first AGENTS.md from what the project shows."""

import json


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
        "# work\n\nCounts grains.\n\n"
        "## Commands\n\n- `make test`\n- `npm run lint`\n- `pytest`\n"
        "- `ruff check .`\n- `go build ./...`\n- `go test ./...`\n- `go vet ./...`\n\n"
        "## Layout\n\n- `src/`\n- `tests/`\n\n"
        "## Conventions\n\n(Say here what a newcomer has to know.)\n"
    )


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
