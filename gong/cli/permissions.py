"""`gong permissions`: check calls against the rules of permission, and edit the user's own rules.

`check` runs nothing and asks nobody. `add` and `rm` change config.toml and keep its comments.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import Struct

from tape.cli.output import NamingGroup, as_json, format_examples, print_bytes, print_json
from tape.cli.terminal import format_table, print_lines

from ..config import PROJECT_FILE, ProjectRules, parse_settings, read_settings_file
from ..policy.permissions import PermissionPolicy, build_policy
from ..policy.saved_rules import RULE_KINDS, RuleKind, remove_rule, save_rule
from ..private_files import locate_config_file
from ..project import expand_rule, locate_folder, locate_project
from .options import add_permission_options, load_settings, merge_permissions, print_warning

if TYPE_CHECKING:
    from ..policy.ruling import Ruling

_USAGE_EXIT, _NOTHING_EXIT = 2, 3


class _CheckedCall(Struct, frozen=True):
    """A line of `check --jsonl`."""

    tool: str
    args: dict[str, Any] = {}


class CheckAnswer(Struct, frozen=True, omit_defaults=True):
    """The answer to a line of `check --jsonl`."""

    decision: str
    offered: tuple[str, ...]
    why: str
    rule: str | None = None
    """The rule that decided."""
    once: bool = False
    """Whether a person may allow it this once although it is denied."""


@click.group(
    cls=NamingGroup,
    epilog=format_examples(
        "gong permissions list",
        "gong permissions add 'Bash(npm test:*)'",
        "gong permissions add --deny 'Read(secrets/**)'",
        """gong permissions check bash '{"command": "npm test"}'""",
    ),
)
def permissions() -> None:
    """Check calls against the rules of permission, and edit your own rules."""


@permissions.command()
@click.option("--jsonl", is_flag=True, help='Read one call per line: {"tool": NAME, "args": {…}}.')
@click.argument("name", metavar="[TOOL]", default="")
@click.argument("arguments", metavar="[JSON]", default="")
@add_permission_options
def check(name: str, arguments: str, *, jsonl: bool, **options: Any) -> None:
    """Print {decision, offered, why} for calls; run nothing, and ask nobody.

    The decision is allow, ask or deny. `offered` are the rules that "always" would save.
    """
    if jsonl == bool(name):
        raise click.UsageError("give either a tool with its arguments, or --jsonl")
    given_rules = merge_permissions(load_settings().permissions, **options)
    policy = build_policy(given_rules, locate_folder(), os.environ)
    if not jsonl:
        tool = msgspec.json.encode(name)
        line = b'{"tool":%b,"args":%b}' % (tool, os.fsencode(arguments.strip()) or b"{}")
        answer, code = _answer_line(policy, line)
        print_bytes(answer)
        sys.exit(code)
    worst = 0
    for line in sys.stdin.buffer:
        if line.strip():
            answer, code = _answer_line(policy, line)
            worst = max(worst, code)
            print_bytes(answer)
            sys.stdout.flush()
    sys.exit(worst)


def _answer_line(policy: PermissionPolicy, line: bytes) -> tuple[bytes, int]:
    """Return the answer to a call as a JSON line, and an exit code."""
    try:
        call = msgspec.json.decode(line, type=_CheckedCall)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        why = f'not a call: {error}. Give {{"tool": NAME, "args": {{…}}}}.'
        return msgspec.json.encode(CheckAnswer("deny", (), why)) + b"\n", _USAGE_EXIT
    ruling: Ruling = asyncio.run(policy.judge_in_time(call.tool, call.args))
    answer = CheckAnswer(ruling.decision, ruling.offered, ruling.why, ruling.rule, ruling.once)
    return msgspec.json.encode(answer) + b"\n", 0


def _find_root() -> str:
    """Return the folder that rules for this project are saved under."""
    return str(locate_project(locate_folder()))


def _describe_place(project: str | None) -> str:
    return "" if project is None else f" (in {project})"


@permissions.command(name="list")
@as_json
def list_(*, as_json: bool) -> None:
    """Print the mode and the rules that hold here, and where each of them holds.

    That is everywhere, in this project by your config.toml, or in it by its own.
    """
    permissions = load_settings().permissions
    if as_json:
        print_json(permissions)
        return
    mine = permissions.projects.get(_find_root(), ProjectRules())
    file = locate_config_file(os.environ)
    user = parse_settings(file, read_settings_file(file)).permissions
    rows = []
    for kind in RULE_KINDS:
        places = dict.fromkeys(getattr(user, kind), "everywhere")
        saved = {expand_rule(rule, _find_root()): rule for rule in getattr(mine, kind)}
        places |= {rule: "this project" for rule in saved if rule not in places}
        rules = dict.fromkeys(getattr(permissions, kind))
        rows += [(kind, saved.get(rule, rule), places.get(rule, PROJECT_FILE)) for rule in rules]
    table = format_table(rows, headings=("KIND", "RULE", "WHERE")) if rows else []
    print_lines([f"mode {permissions.mode}", *table])


_kind_option = click.option(
    "--allow", "kind", flag_value="allow", default="allow", help="A rule that allows (default)."
)
_deny_option = click.option("--deny", "kind", flag_value="deny", help="A rule that denies.")
_ask_option = click.option("--ask", "kind", flag_value="ask", help="A rule that asks.")


@permissions.command()
@click.argument("rules", nargs=-1, required=True, metavar="RULE...")
@_kind_option
@_deny_option
@_ask_option
@click.option("--project", is_flag=True, help="For the project of this folder only.")
def add(rules: tuple[str, ...], kind: RuleKind, *, project: bool) -> None:
    """Add rules to your config.toml; comments and order stay."""
    file, root = locate_config_file(os.environ), _find_root() if project else None
    for rule in rules:
        save_rule(file, rule, kind, project=root)
    where = _describe_place(root)
    print_lines([f"{file}: {kind} {rule}{where}" for rule in rules])


@permissions.command()
@click.argument("rules", nargs=-1, required=True, metavar="RULE...")
def rm(rules: tuple[str, ...]) -> None:
    """Remove rules from your config.toml, of all kinds, also those for this project.

    The exit code is 3 if one is missing.
    """
    file, root = locate_config_file(os.environ), _find_root()
    missing: list[str] = []
    for rule in rules:
        removed = remove_rule(file, rule, root)
        print_lines(
            [f"{file}: removed {kind} {rule}{_describe_place(where)}" for kind, where in removed]
        )
        missing += () if removed else [rule]
    for rule in missing:
        print_warning(f"there is no rule {rule}")
    sys.exit(_NOTHING_EXIT if missing else 0)
