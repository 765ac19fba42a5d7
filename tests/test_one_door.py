"""One door to the workspace: `gong/env/`; what other rooms do with files and processes is listed.

A session may act in a container or on another machine. A room that opens, stats or lists a file, or
starts a program, does so on the machine of the session, whatever place its tools act in. So each
module outside of `gong/env/` that does is in `EXCEPTIONS`, with the reason why that is right, and
one that stops doing so leaves it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from tests.sources import ROOT, parse_package

if TYPE_CHECKING:
    from collections.abc import Iterator

_OS = {
    *("open", "stat", "lstat", "scandir", "listdir", "walk", "access", "readlink", "remove"),
    *("unlink", "rename", "replace", "mkdir", "makedirs", "rmdir", "chmod", "symlink", "link"),
    *("utime", "truncate", "posix_spawn", "system", "popen", "fork"),
}
_OS_PATH = {
    *("exists", "lexists", "isfile", "isdir", "islink", "realpath", "getmtime", "getsize"),
    *("samefile", "ismount"),
}
_METHODS = {
    *("exists", "is_file", "is_dir", "is_symlink", "read_text", "read_bytes", "write_text"),
    *("write_bytes", "iterdir", "rglob", "stat", "lstat", "readlink", "unlink", "mkdir", "touch"),
    *("symlink_to", "hardlink_to"),
}
"""Methods of paths; `glob` and `resolve` are those of environments, too."""
_STARTS = {"create_subprocess_exec", "create_subprocess_shell", "Popen"}
_PROGRAMS = {"run_program", "read_output"}


def find_sites(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of each call that touches files, or starts a program, on this machine."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        base, _, method = name.rpartition(".")
        if not base:
            is_site = method in {"open", *_PROGRAMS}
        elif base == "os":
            is_site = method in _OS
        elif base == "os.path":
            is_site = method in _OS_PATH
        elif base in {"subprocess", "shutil", "asyncio"}:
            is_site = base == "subprocess" or method in _STARTS or base == "shutil"
            is_site = is_site and method not in {"which", "get_terminal_size", "disk_usage"}
        else:
            is_site = method in _METHODS or (method == "open" and _opens_path(node))
        if is_site:
            yield node.lineno, name


def _opens_path(node: ast.Call) -> bool:
    """Return whether a method `open` is given what that of a path takes: a mode, or nothing."""
    mode = node.args[0] if node.args else None
    return isinstance(mode, ast.Constant) and str(mode.value).strip("rwxabt+") == ""


OWN = "files of gong and of its user, which are on the machine of the session wherever tools act"
PROJECT = (
    "what a project brings for gong itself, such as hooks and servers: that of the folder here"
)
HERE = "the workspace where it is on this machine; in a place another module does it, or asks there"
ALONE = "works on this machine alone, and docs/places.md says so"
JUDGES = "judges by names and links here; in a place `place_names` asks for them there"
EXCEPTIONS = {
    "gong/cli/": OWN,
    "gong/evals/": "tasks that agents are measured by, in sandboxes of their own",
    "gong/llm/": OWN,
    "gong/logins/": OWN,
    "gong/plugins/": OWN,
    "gong/agent/recorder.py": OWN,
    "gong/context/remote_state.py": OWN,
    "gong/config_file.py": OWN,
    "gong/context/work.py": OWN,
    "gong/credentials.py": OWN,
    "gong/policy/commands/tables.py": OWN,
    "gong/private_files.py": OWN,
    "gong/repl/draw/terminal.py": OWN,
    "gong/repl/typing/pictures.py": "pictures of this machine, which a person gives",
    "gong/repl/typing/prompt_input.py": "pictures that a person drops on the terminal",
    "gong/review/memory.py": OWN,
    "gong/tools/output_storage.py": OWN,
    "gong/assembly/opening.py": PROJECT,
    "gong/config.py": PROJECT,
    "gong/git_folders.py": PROJECT,
    "gong/git_programs.py": PROJECT,
    "gong/hooks/": PROJECT,
    "gong/mcp/": PROJECT,
    "gong/policy/commands/configured.py": PROJECT,
    "gong/project.py": PROJECT,
    "gong/skills/": PROJECT,
    "gong/subagents/types.py": PROJECT,
    "gong/trust.py": PROJECT,
    "gong/child_programs.py": "programs for keys, searches and answers, not of the workspace",
    "gong/repl/commands/": "programs of gong itself, in the folder of the session here",
    "gong/acp/call_files.py": HERE,
    "gong/checkpoints/disk_file.py": HERE,
    "gong/checkpoints/file_recorder.py": HERE,
    "gong/checkpoints/folder_listing.py": HERE,
    "gong/checkpoints/folder_tree.py": HERE,
    "gong/checkpoints/local_changes.py": HERE,
    "gong/checkpoints/restore.py": HERE,
    "gong/context/instructions.py": HERE,
    "gong/context/place_instructions.py": "copies of what was read in a place",
    "gong/repl/typing/mentions.py": HERE,
    "gong/repl/typing/place_mentions.py": "copies of what was read in a place",
    "gong/subagents/child.py": HERE,
    "gong/tools/command.py": HERE,
    "gong/tools/known_files.py": HERE,
    "gong/context/project_notes.py": ALONE,
    "gong/lsp/": ALONE,
    "gong/review/analysers.py": ALONE,
    "gong/review/diff.py": ALONE,
    "gong/subagents/worktree.py": ALONE,
    "gong/workflow/": ALONE,
    "gong/policy/files/": JUDGES,
    "gong/policy/permissions.py": JUDGES,
}
"""Module, or room with a slash at its end → why it does not ask the environment."""


def list_sites() -> dict[str, list[str]]:
    """Return the sites of each module outside of `gong/env/`, as lines of text."""
    sites = {}
    for path, tree in parse_package(ROOT, "gong").items():
        name = path.as_posix()
        lines = [f"{name}:{line}: {call}" for line, call in find_sites(tree)]
        if lines and not name.startswith("gong/env/"):
            sites[name] = lines
    return sites


def find_exception(name: str) -> str | None:
    """Return the line of the list that a module is in; None for none."""
    return next((key for key in EXCEPTIONS if name == key or name.startswith(_as_room(key))), None)


def _as_room(key: str) -> str:
    return key if key.endswith("/") else "\0"


def test_no_other_room_touches_the_workspace():
    """M122: the environment is the one door; exceptions have their reasons."""
    sites = list_sites()
    new = [line for name, lines in sites.items() if not find_exception(name) for line in lines]
    assert not new, "ask the environment (gong/env/protocol.py) instead:\n" + "\n".join(new)
    used = {find_exception(name) for name in sites}
    assert set(EXCEPTIONS) - used == set(), "no exceptions any more: leave them out of the list"


EXAMPLES = {
    "open(path)": True,
    "Path(folder, name).read_text()": True,
    "path.open('rb')": True,
    "os.path.realpath(path)": True,
    "os.scandir(folder)": True,
    "subprocess.run(argv)": True,
    "asyncio.create_subprocess_exec(*argv)": True,
    "shutil.copyfile(a, b)": True,
    "env.read_file(path)": False,
    "env.resolve(path)": False,
    "Recorder.open(tape)": False,
    "os.path.join(a, b)": False,
    "text.replace(a, b)": False,
    "shutil.which(name)": False,
}


@pytest.mark.parametrize("text", EXAMPLES)
def test_an_example_is_judged(text):
    assert bool(list(find_sites(ast.parse(text)))) is EXAMPLES[text]
