"""What an installed copy holds and asks for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import distribution, entry_points
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel as an installer would, with the build backend that stands here."""
    out = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", out, ROOT],
        check=True,
    )
    (built,) = out.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        yield archive


def test_the_wheel_holds_every_module_and_its_typing_mark(wheel):
    names = set(wheel.namelist())
    modules = {
        str(file.relative_to(ROOT))
        for name in ("tape", "gong")
        for file in ROOT.glob(f"{name}/**/*.py")
    }
    assert modules | {"tape/py.typed", "gong/py.typed"} <= names


def test_the_wheel_holds_the_migrations(wheel):
    wanted = {
        f"tape/migrations/{file.name}"
        for file in ROOT.glob("migrations/*")
        if file.suffix in {".py", ".sql"}
    }
    assert wanted
    assert wanted <= set(wheel.namelist())


def test_the_wheel_installs_nothing_else_at_the_top(wheel):
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"tape", "gong"}


def test_the_core_asks_for_fourteen_packages():
    wants = map(Requirement, distribution("gong").requires or ())
    assert {want.name for want in wants if want.marker is None} == {
        *("click", "jiter", "jsonschema", "markdown-it-py", "msgspec"),
        *(
            "prompt-toolkit",
            "pygments",
            "pyyaml",
            "sqlite-utils",
            "tomlkit",
            "tree-sitter",
            "tree-sitter-bash",
            "wcwidth",
            "zstandard",
        ),
    }


def test_unfinished_json_is_read_with_what_the_core_asks_for():
    """M055, M056: no SDK and no HTTP client is there in an installation without extras."""
    code = (
        "import sys\n"
        "for name in ('anthropic', 'openai', 'httpcore2', 'httpx2', 'keyring', 'pypdf', 'PIL',\n"
        "             'tiktoken'):\n"
        "    sys.modules[name] = None\n"
        "from gong.llm.partial_json import parse_partial_arguments\n"
        """for text in '{"file":"/src/ma', '{"a":[1,':\n"""
        "    print(parse_partial_arguments(text), end=' ')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "{'file': '/src/ma'} {'a': [1]} "


def test_both_commands_are_installed_beside_the_python_that_runs_them():
    scripts = entry_points(group="console_scripts")
    for name in ("tape", "gong"):
        assert scripts[name].value == f"{name}.cli:main"
        assert callable(scripts[name].load())
        assert (Path(sys.executable).parent / name).exists()


def test_a_copy_installed_from_a_repository_names_its_commit(tmp_path):
    """By what the installer notes of the repository (PEP 610); an index has nothing of it."""
    source, installed = tmp_path / "source", tmp_path / "installed"
    source.mkdir()
    for name in ("tape", "gong", "migrations"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    git = ["git", "-C", source, "-c", "user.name=a", "-c", "user.email=a@b.example"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "One"]):
        subprocess.run([*git, *words], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip += ["--no-deps", "--no-build-isolation", "--no-index", "--target", installed]
    subprocess.run([*pip, f"git+file://{source}"], check=True)
    code = "from gong.cli.version import find_commit; print(find_commit())"

    def told():
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(installed)},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    assert told() == head.stdout.strip()
    (note,) = installed.glob("gong-*.dist-info/direct_url.json")
    note.unlink()
    assert told() == "None"
