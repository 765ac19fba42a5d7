"""How dangerous a command line for bash is: safe, ask or dangerous, and the reason.

Text in, values out: no file is looked at and nothing is run. A command line is as dangerous as its
most dangerous part; what is not understood is never safe. Each `CommandFinding` names a part that
is not safe; those that are asked about are what rules of permission are about.

An example: a session in /home/ada/project wants to run

    x=$(pwd); cd .. && sudo rm -rf "$x"

`parse_command_line` finds four simple commands; a substitution comes before the command around it.
Each is judged with the state that those before it left:

    command           what it runs                   the state after it      findings
    pwd (subshell 1)  pwd                            prints the folder       –
    x=$(pwd)          –                              x=/home/ada/project     –
    cd ..             cd ..                          folder /home/ada        ask: read elsewhere
    sudo rm -rf "$x"  sudo rm -rf /home/ada/project  –                       dangerous: rm behind it
                      rm -rf /home/ada/project       –                       dangerous: vital folder

`_judge_command` expands the words: once for each choice of values that the variables may have, so
that a name with two values gives two readings. `_judge_program` asks `find_dangers` (tables and
checks), then judges what the program runs: sudo runs rm (`find_inner_commands`), a shell its input
and its files (`_judge_scripts`). A program that adds nothing of its own, such as `time`, leaves the
verdict to what it runs; any other is asked about unless `is_only_reading`. The first finding of
the highest level is the verdict:

    DANGEROUS, "removes a system, home or workspace folder", part: sudo rm -rf "$x"
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ...shell.expansion import (
    MAX_VALUE,
    Argument,
    CommandTooLong,
    FreshFolder,
    ShellState,
    expand_word,
    expand_words,
    is_fully_expanded,
    limit_values,
)
from ...shell.parser import parse_command_line
from ...shell.words import ParserMissing
from .checks import find_dangers, find_embedded_commands
from .effects import build_run_action, build_write_action
from .finding import CommandFinding, DangerLevel
from .hidden import WrittenFiles, find_hidden_commands, split_suspect_parts
from .invocation import (
    Invocation,
    PathContext,
    resolve_cd_target,
)
from .matching import FETCHED_REASON, find_option_value, is_only_reading, list_operands
from .scope import (
    DECLARING_BUILTINS,
    SETTING_BUILTINS,
    Scope,
    apply_builtin,
    build_invocation,
    is_harmless_variable,
    is_only_setting,
    judge_assignment,
    judge_redirection,
    list_given_texts,
    list_input_paths,
    list_printed_texts,
    list_xargs_arguments,
    resolve_substitutions,
)
from .tables import has_reading_subcommands, load_tables
from .wrappers import (
    LISTED_NAME,
    drop_harmless_execs,
    find_inner_commands,
    is_harmless_xargs,
    is_listing_files,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...shell.expansion import Arguments, ParsedCommandLine, Redirect, SimpleCommand


_MAX_DEPTH = 8  # so many commands inside of commands are looked at
_MAX_STEPS = 8000
"""So many readings of commands are judged in one command line; four arguments count as much."""
_PARSING = 5  # steps that reading a text costs, whatever it holds
_MAX_TIMES = 8  # so many times the same text is looked at
_SHREDS = re.compile(r"[;&|\n(){}`]+")
_MAX_SHREDS = 200
_PATTERN = re.compile(r"[!?*+@]\([^()]*\)")
_DOUBLED = re.compile(r"([()])(?=\1)")
_BRACE = re.compile(r"\{([^{}\s]*,[^{}\s]*)\}")
_CREDENTIAL = re.compile(
    r"(?:\$\{)?((?:[A-Z0-9_]*_)?(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|CREDENTIALS?|PAT)"
    r"(?:_[A-Z0-9_]*)?)(?!\w)"
)
_MAX_ADDED = 64  # values that `x+=` may make at once
_NEW_FOLDER = "/tmp/tmp.XXXXXXXXXX"  # noqa: S108 (a name)
_MKTEMP_OPTIONS = {"-d", "-q", "--directory", "--quiet"}
"""Options with which mktemp makes a folder where it makes them unless it is told otherwise."""
_SYSTEM_FOLDERS = {"", "/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"}
_SYSTEM_FOLDERS |= {"/opt/homebrew/bin"}
_BLANK = re.compile(r"\s")
_SEPARATORS = re.compile(r"[\s'\"\\;|&()$`]+")
_MAX_NAMES = 8  # names that are put in the place of `{}`
_READ_SCRIPTS = {"source", ".", "ssh", "su", "at", "batch"}


@dataclass(slots=True)
class CommandJudge:
    """Goes through one command line, and is used for no other.

    Commands run commands, so its methods call each other: a text holds commands, a command is a
    program, and a program may run a text. `found` only grows; `steps` and `depth` bound the work.
    """

    places: PathContext
    depth: int = 0
    found: list[CommandFinding] = field(default_factory=list)
    uses: dict[SimpleCommand, list[Invocation]] = field(default_factory=dict)
    """What each command runs, as far as it was judged."""
    functions: set[str] = field(default_factory=set)
    steps: int = 0
    """How much was judged so far."""
    loose: set[str] = field(default_factory=set)
    """Names set in loops and branches: they keep every value they ever may have."""
    running: set[str] = field(default_factory=set)
    """Texts that are being looked at: one may name itself."""
    looked_at: Counter[str] = field(default_factory=Counter)
    """Texts of files and aliases whose dangers were looked for, and how often."""
    aliases: dict[str, str] = field(default_factory=dict)
    written: WrittenFiles = field(default_factory=WrittenFiles)
    removes: bool = False
    """Whether a text that it runs, and no action tells, removes something."""
    inputs: list[str] = field(default_factory=list)
    """Files that are redirected into commands, absolute and not made plain."""
    actions: list[CommandFinding] = field(default_factory=list)
    """What the command line does that is neither safe nor dangerous; a wrapper holds its own."""

    @property
    def only_reads(self) -> bool:
        """Whether the command line is known to change nothing."""
        is_safe = all(one.level is not DangerLevel.DANGEROUS for one in self.found)
        return is_safe and all(one.reads for one in self.actions)

    def judge_text(self, text: str, state: ShellState, feeders: tuple[SimpleCommand, ...]) -> None:
        """Judge a text of shell; raises CommandTooLong, and ParserMissing."""
        self._count_steps(_PARSING)
        view = parse_command_line(text)
        self.functions |= view.functions
        if not view.whole:
            self.add_finding(DangerLevel.ASK, "cannot be taken apart", text)
            self._judge_shreds(text, state)
        for bomb in view.bombs:
            self.add_finding(DangerLevel.DANGEROUS, "starts itself without end", bomb)
        self.loose |= {
            name.rstrip("+")
            for one in view.commands
            if not one.certain
            for name, _ in one.assignments
        }
        first = state.folders
        self._judge_commands(view, state, feeders)
        if not all(one.certain for one in view.commands):
            # a loop's start sees what its end has set
            state.folders = tuple(dict.fromkeys((*first, *state.folders)))
            self._judge_commands(view, state, feeders)

    def _judge_shreds(self, text: str, state: ShellState) -> None:
        """Look for danger in a text that cannot be taken apart.

        It is judged in shreds, and with `!(a)` and the like, which the grammar does not know, as
        `*`.
        """
        if self.depth >= _MAX_DEPTH:
            return
        parts = dict.fromkeys(one.strip() for one in _SHREDS.split(text))
        shreds = [one for one in parts if one and one != text.strip()]
        if len(shreds) > _MAX_SHREDS:
            raise CommandTooLong
        plain = _PATTERN.sub("*", text)
        spread = _BRACE.sub(lambda found: found[1].replace(",", " "), text)  # `{rm,-rf,x}`
        parted = _DOUBLED.sub(r"\1 ", text)  # `((a | b) )` may be two subshells
        self.depth += 1
        for one in (*shreds, *(each for each in {plain, spread, parted} if each != text)):
            with self._keep_only_dangers(runs=True):
                self.judge_text(one, state.copy(), ())
        self.depth -= 1

    def _count_steps(self, steps: int) -> None:
        """Count what is looked at; raises CommandTooLong."""
        self.steps += steps
        if self.steps > _MAX_STEPS:
            raise CommandTooLong

    def add_finding(
        self, level: DangerLevel, reason: str, part: str, action: CommandFinding | None = None
    ) -> None:
        """Add a finding, and what it asks about: `action`, or the part as a whole."""
        finding = CommandFinding(level, part, reason)
        self.found.append(finding)
        if level is DangerLevel.ASK:
            self.actions.append(action or finding)

    @contextmanager
    def _keep_only_dangers(self, *, runs: bool = False) -> Iterator[None]:
        """Forget what is found meanwhile, but for dangers: the text may run, or may not.

        With `runs` it is sure to: then it is kept that it removes something.
        """
        before, actions = len(self.found), len(self.actions)
        yield
        self.removes |= runs and any(one.removes for one in self.actions[actions:])
        self.found[before:] = [one for one in self.found[before:] if one.level > DangerLevel.ASK]
        del self.actions[actions:]

    def _judge_commands(
        self, view: ParsedCommandLine, state: ShellState, feeders: tuple[SimpleCommand, ...]
    ) -> None:
        for command in view.commands:  # what functions are called with: $1, $2, $@
            name, *given = command.words or ((),)
            if "".join(piece.text for piece in name) in view.functions:
                values = [expand_word(one, state) for one in given]
                every = tuple(text for possible in values for text in possible)
                numbered = {str(number): possible for number, possible in enumerate(values, 1)}
                for variable, possible in {**numbered, "@": every, "*": every}.items():
                    before = state.variables.get(variable, ())
                    state.variables[variable] = (*before, *possible)
        states: dict[tuple[int, ...], ShellState] = {(): state}
        for command in view.commands:  # a subshell starts with a copy of the state around it
            scope = command.scope
            known = next(scope[:n] for n in range(len(scope), -1, -1) if scope[:n] in states)
            states[scope] = states[scope] if scope == known else states[known].copy()
            self._judge_command(command, states[scope], (*feeders, *command.feeders))

    def _judge_command(
        self, command: SimpleCommand, state: ShellState, feeders: tuple[SimpleCommand, ...]
    ) -> None:
        state.leave_chain(command.chain)
        at = Scope(command, state, replace(self.places, folders=state.folders), feeders)
        targets = [target for one in command.redirects for target in self._judge_redirect(one, at)]
        obeyed = self._judge_assignments(at)
        words = tuple(resolve_substitutions(word, state, self.uses) for word in command.words)
        readings = [one for one in expand_words(words, state) if one]
        for arguments in readings:
            self._judge_program(arguments, at, obeyed)
            fed = tuple(list_given_texts(at, self.uses)) if arguments[0].text == "read" else ()
            apply_builtin(arguments, state, fed, certain=command.certain and len(readings) == 1)
        for text in self.written.keep(self.uses.get(command, ()), targets):
            self._check_text(text, at)
        self._ask_about_credentials(command, state)
        if not is_fully_expanded(words, state):
            self.add_finding(DangerLevel.ASK, "may expand to too many commands", command.source)

    def _ask_about_credentials(self, command: SimpleCommand, state: ShellState) -> None:
        """Ask where a variable may hold a credential of the environment, and is not only tested."""
        first = "".join(piece.text for word in command.words[:1] for piece in word)
        given = (one.target for one in command.redirects if one.operator == "<<")
        for piece in (piece for word in (*command.words, *given) for piece in word):
            found = piece.kind in {"variable", "unknown"} and _CREDENTIAL.match(piece.text)
            if found and found[1] not in state.variables and first not in {"[", "test"}:
                self.add_finding(
                    DangerLevel.ASK, f"shows {found[1]}, which may be a credential", command.source
                )

    def _judge_redirect(self, redirect: Redirect, at: Scope) -> Iterator[Argument]:
        """Judge a redirection and yield the files it writes."""
        if redirect.operator == "<<":
            return
        for arguments in expand_words(
            (resolve_substitutions(redirect.target, at.state, self.uses),), at.state
        ):
            for target in arguments:
                level, reason = judge_redirection(redirect.operator, target, at.places)
                if level:
                    action = None
                    if ">" in redirect.operator:
                        action = build_write_action(redirect.source, reason, target, at.places)
                    self.add_finding(level, reason, redirect.source, action)
                if ">" in redirect.operator:
                    yield target
                elif target.known:
                    self.inputs += list_input_paths(target, at.places)

    def _judge_assignments(self, at: Scope) -> tuple[str, ...]:
        """Judge what is assigned; return the variables which the program after them obeys."""
        obeyed: list[str] = []
        values: dict[str, list[str | None]] = {}
        for name, word in at.command.assignments:
            given = expand_word(resolve_substitutions(word, at.state, self.uses), at.state)
            before = at.state.values(name[:-1]) if name.endswith("+") else ()
            pairs = [(left, right) for left in before for right in given]
            added = (
                None
                if left is None or right is None or len(left + right) > MAX_VALUE
                else left + right
                for left, right in pairs[: _MAX_ADDED + 1]
            )
            known = values.setdefault(name.rstrip("+"), [])
            known[:] = limit_values(
                (*known, *([None] if len(pairs) > _MAX_ADDED else added), *given)
            )
        first = "".join(piece.text for word in at.command.words[:1] for piece in word)
        for name, possible in values.items():
            if (name, first) != ("IFS", "read"):  # there it parts what is read and nothing else
                obeyed += self._judge_variable(name, possible, at, for_program=bool(first))
        for name, word in at.command.assignments:
            if not is_harmless_variable(name.rstrip("+")):
                inside = (each for piece in word for each in piece.inside)
                ran = [one for each in inside for one in self.uses.get(each, ())]
                for text in [text for one in ran for text in list_printed_texts(one)]:
                    self._check_text(text, at)  # `BASH_ENV=<(echo …)`
        stays = not first or first in DECLARING_BUILTINS
        for name, possible in values.items():
            if stays or name == "CDPATH":  # which `CDPATH=/ cd home` obeys at once
                loose = name in self.loose and name in at.state.variables
                before = () if at.command.certain and not loose else at.state.values(name)
                at.state.variables[name] = limit_values((*before, *possible))
        self._record_fresh_folder(at)
        if obeyed and not at.command.words:
            reason = "sets variables, which other programs may obey"
            words = tuple(obeyed)
            self.actions.append(
                CommandFinding(DangerLevel.ASK, at.command.source, reason, "run", words, code=True)
            )
        return tuple(obeyed)

    def _record_fresh_folder(self, at: Scope) -> None:
        """Keep what `name=$(mktemp -d) &&` makes: what comes after runs only if there is one."""
        command, given = at.command, at.command.assignments
        if not command.chain or command.words or len(given) != 1 or len(given[0][1]) != 1:
            return
        ran = [one for inner in given[0][1][0].inside for one in self.uses.get(inner, ())]
        if (
            len(ran) != 1
            or ran[0].name != "mktemp"
            or not all(one.known for one in ran[0].arguments)
        ):
            return
        options = {one.text for one in ran[0].arguments}
        if options & {"-d", "--directory"} and options <= _MKTEMP_OPTIONS:
            at.state.fresh = FreshFolder(command.chain, given[0][0], at.state.folders)
            at.state.variables[given[0][0]] = (_NEW_FOLDER,)

    def _judge_variable(
        self, name: str, values: Sequence[str | None], at: Scope, *, for_program: bool
    ) -> tuple[str, ...]:
        """Judge the values a variable is given; return it as a word where programs obey it."""
        level, reason = judge_assignment(
            name, values, exported=self.places.exported, for_program=for_program
        )
        word: tuple[str, ...] = ()
        if level:
            before = len(self.actions)
            self.add_finding(level, reason, at.command.source)
            if level is DangerLevel.ASK and len(values) == 1 and values[0] is not None:
                del self.actions[before:]  # the program's own action shows it
                word = (f"{name}={shlex.quote(values[0])}",)
            for text in values:  # other programs may run it: PAGER, GIT_SSH_COMMAND, BASH_ENV
                paths = at.places.paths(Argument(text)) if text else ()
                held = (each for path in paths for each in self.written.texts.get(path, ()))
                for part in (*(split_suspect_parts(text) if text else ()), *held):
                    self._check_text(part, at)
        return word

    def _judge_program(self, arguments: Arguments, at: Scope, obeyed: tuple[str, ...] = ()) -> None:
        """Judge one program with its arguments, and what it runs; raises CommandTooLong.

        `obeyed` are variables set for it, as words.
        """
        self._count_steps(1 + len(arguments) // 4)
        use = build_invocation(arguments, at, self.uses)
        uses = self.uses.setdefault(at.command, [])
        if use not in uses:  # what may or may not run is judged for both
            uses.append(use)
        reasons = self._add_dangers(use, at)
        before = len(self.actions)
        clear = self._judge_inner_commands(use, at)
        self._judge_scripts(arguments[0], use, at)
        self._judge_fed_commands(use, at)
        if use.name == "alias":
            named = (one.text.partition("=") for one in use.arguments)
            self.aliases |= {name: text for name, _, text in named}
        elif use.name == "hash":
            self._record_hashed_program(use)
        if use.name in self.aliases:
            words = (shlex.quote(one.text) for one in use.arguments)
            self._check_text(" ".join((self.aliases[use.name], *words)), at)
        inner = tuple(self.actions[before:])
        reads = self._is_only_reading_program(arguments[0], use)
        if not clear and not reasons and not reads:
            self.add_finding(DangerLevel.ASK, _explain_unknown_program(use), at.command.source)
            for text in find_hidden_commands(use):
                self._check_text(text, at)
        self.actions[before:] = inner
        if obeyed or not (clear or reads or self._is_only_handing_on(use, inner)):
            reason, source = _explain_unknown_program(use), at.command.source
            own = build_run_action(arguments[0], use, obeyed, source, reason)
            self.actions[before:] = [own._replace(inner=inner)]

    def _record_hashed_program(self, use: Invocation) -> None:
        """Keep what `hash -p program name` makes of a name."""
        program = find_option_value(use.arguments, "-p")
        given = [one.text for one in list_operands(use.arguments, ("-p",))]
        if program is not None:
            self.aliases |= {name.lower(): shlex.quote(program.text) for name in given}

    def _judge_fed_commands(self, use: Invocation, at: Scope) -> None:
        """Look at texts that reach a shell by another way than its input.

        `exec 3<<<TEXT` opens one for a later `bash <&3`, `mapfile a <<<TEXT` fills an array whose
        elements may be a command, and `… | tee >(bash)` feeds a shell beside.
        """
        opens = use.name in {"mapfile", "readarray"} or (use.name == "exec" and not use.arguments)
        targets = (one.target for one in at.command.redirects if ">" in one.operator)
        beside = [
            *use.inside,
            *(
                each
                for word in targets
                for piece in word
                for inner in piece.inside
                for each in self.uses.get(inner, ())
            ),
        ]
        shells = [one for one in beside if one.name in load_tables().words.shells]
        if opens or shells:
            texts = (*use.given, *list_printed_texts(use))
            for text in dict.fromkeys(texts):
                for one in (text, text.replace("\n", " ")):
                    self._check_text(one, at)
            joined = " ".join(texts)
            if opens and joined not in texts:
                self._check_text(joined, at)
        feeding = (use, *use.before)
        if shells and any(one.name in load_tables().words.downloaders for one in feeding):
            self.add_finding(DangerLevel.DANGEROUS, FETCHED_REASON, at.command.source)

    def _is_only_handing_on(self, use: Invocation, inner: tuple[CommandFinding, ...]) -> bool:
        """Whether a program does nothing but to run others, which are judged on their own."""
        if use.name in self.functions:
            return True
        if not inner or use.name != "find":
            return bool(inner) and use.name == "xargs"
        own, rest = [], iter(use.arguments)
        for one in rest:
            if one.text in {"-exec", "-execdir", "-ok", "-okdir"}:
                any(each.text in {";", "+"} for each in rest)  # up to the end of the command
            else:
                own.append(one)
        return is_only_reading("find", tuple(own), use.places)

    def _add_dangers(self, use: Invocation, at: Scope) -> bool:
        """Add every reason for which a use is dangerous; whether there is one."""
        reasons = list(find_dangers(use))
        for reason in reasons:
            self.add_finding(DangerLevel.DANGEROUS, reason, at.command.source)
        return bool(reasons)

    def _is_only_reading_program(self, first: Argument, use: Invocation) -> bool:
        folder, _, name = first.text.rpartition("/")
        decided = first.known and not first.glob
        if not decided or folder not in _SYSTEM_FOLDERS or name in self.functions:
            return False
        if (first.text.startswith("/") and not folder) or _BLANK.search(name):
            return False  # `'git status'` is no git: its name has a blank
        if name in SETTING_BUILTINS:
            only_sets = is_only_setting(name, use.arguments, self.places.exported)
            return only_sets or is_only_reading(name, use.arguments, use.places)
        if name == "xargs":
            return is_harmless_xargs(use)
        if name == "find":
            return is_only_reading(name, drop_harmless_execs(use.arguments, use.places), use.places)
        return is_only_reading(name, use.arguments, use.places)

    def _judge_inner_commands(self, use: Invocation, at: Scope) -> bool:
        """Judge what a program runs; whether that is all it does."""
        if use.name in self.functions and use.arguments:
            first = use.arguments[0].text.lower()
            if first not in self.functions and self.depth < _MAX_DEPTH:
                self._judge_likely_program(use.arguments, at)
        given = list_operands(use.arguments) if use.name == "set" else ()
        if given and self.depth < _MAX_DEPTH:  # a later `"$@"` may run them
            self._judge_likely_program(given, at)
        ran = [*find_inner_commands(use.name, use.arguments)]
        for one in ran:
            obeyed = tuple(
                word
                for name, value in one.assigned
                for word in self._judge_variable(name, (value,), at, for_program=True)
            )
            printed = (each for inner in use.inside for each in list_printed_texts(inner))
            for text in printed if one.assigned else ():
                self._check_text(text, at)  # `env BASH_ENV=<(echo …)`
            if self.depth >= _MAX_DEPTH:
                text = " ".join(each.text for each in (one.text, *one.arguments) if each)
                self._ask_about_depth(text, at)
            elif one.text is None:
                inner = at if one.folder is None else _move_scope(at, one.folder)
                self._judge_inner_program(one.arguments, use, inner, obeyed)
            else:
                if obeyed:
                    self.add_finding(DangerLevel.ASK, "sets variables for it", at.command.source)
                if not one.text.known:
                    self.add_finding(
                        DangerLevel.ASK,
                        "runs a text that depends on an expansion",
                        at.command.source,
                    )
                self._judge_script(one.text.text, one.positional, at)
        return bool(ran) and all(one.clear for one in ran)

    def _judge_inner_program(
        self, arguments: Arguments, use: Invocation, at: Scope, obeyed: tuple[str, ...]
    ) -> None:
        """Judge the command of a wrapper, with the arguments that xargs adds or fills in."""
        names = list_xargs_arguments(use) if use.name in {"xargs", "parallel"} else ()
        names = (LISTED_NAME,) if use.name == "xargs" and is_listing_files(use) else names
        option = find_option_value(use.arguments, "-I") or find_option_value(
            use.arguments, "--replace"
        )
        mark = option.text if option and option.text else "{}"
        if any(mark in one.text for one in arguments):
            known = [one.text for one in names if one.known and one != LISTED_NAME]
            for name in known[:_MAX_NAMES]:
                filled = (one._replace(text=one.text.replace(mark, name)) for one in arguments)
                self._judge_likely_program(tuple(filled), at)
        self.depth += 1
        self._judge_program((*arguments, *names), at, obeyed)
        self.depth -= 1

    def _judge_likely_program(self, arguments: Arguments, at: Scope) -> None:
        """Look for danger in a program that may be run so."""
        self.depth += 1
        with self._keep_only_dangers():
            self._judge_program(arguments, at)
        self.depth -= 1

    def _judge_script(self, text: str, positional: Arguments, at: Scope) -> None:
        """Judge a text that a shell of its own runs."""
        state = at.state.copy()
        for number, one in enumerate(positional):
            state.variables[str(number)] = (one.text if one.known else None,)
        given = tuple(one.text for one in positional[1:] if one.text)
        if positional:
            values = tuple(dict.fromkeys((" ".join(given), *given)))
            state.variables |= {"@": values, "*": values}
        self.depth += 1
        if self.depth <= _MAX_DEPTH:
            self.judge_text(text, state, at.feeders)
        else:
            self._ask_about_depth(text, at)
        self.depth -= 1

    def _ask_about_depth(self, text: str, at: Scope) -> None:
        """Ask about a text inside of too many others; its words may be a danger all the same."""
        self.add_finding(DangerLevel.ASK, "runs commands nested too deeply", at.command.source)
        words = tuple(Argument(one) for one in _SEPARATORS.split(text) if one)
        self._count_steps(1 + len(words) // 4)
        self._add_dangers(Invocation("env", words, at.places), at)

    def _judge_scripts(self, first: Argument, use: Invocation, at: Scope) -> None:
        """Judge the texts a program runs: its input, its code, files this command line wrote."""
        if use.name in load_tables().words.shells or use.name in _READ_SCRIPTS:
            for text in use.given:
                self._judge_script(text, (), at)
            printed = (each for one in use.inside for each in list_printed_texts(one))
            for text in dict.fromkeys(printed):
                self._check_text(text, at, runs=True)  # `bash <(echo …)`
        for text in dict.fromkeys(find_embedded_commands(use)):
            with self._keep_only_dangers(runs=True):
                self._judge_script(text, (), at)
        fetched, known = self.written.find_run_texts(first, use)
        if fetched:
            self.add_finding(DangerLevel.DANGEROUS, FETCHED_REASON, at.command.source)
        for text in known:
            fed = replace(use, given=(text,))
            self._add_dangers(fed, at)
            inside = (*find_embedded_commands(fed), *find_hidden_commands(fed))
            for one in dict.fromkeys((text, *inside)):
                self._check_text(one, at, runs=True)

    def _check_text(self, text: str, at: Scope, *, runs: bool = False) -> None:
        """Look for danger in a text that may run; it may name itself."""
        if text in self.running or self.looked_at[text] > _MAX_TIMES:
            return
        self.running.add(text)
        self.looked_at[text] += 1
        with self._keep_only_dangers(runs=runs):
            self._judge_script(text, (), at)
        self.running.discard(text)


def _move_scope(at: Scope, folder: Argument) -> Scope:
    """Return the scope of a command that its wrapper runs in another folder."""
    known = folder.text if folder.known and not folder.glob else None
    folders = tuple(
        None if known is None else resolve_cd_target(known, one, at.places.home)
        for one in at.places.folders
    )
    return replace(at, places=replace(at.places, folders=folders))


def _explain_unknown_program(use: Invocation) -> str:
    if not use.name:
        return "the program depends on an expansion"
    if use.name in load_tables().words.interactive:
        return f"{use.name} waits for keys: use a command that prints and ends, such as cat"
    if load_tables().find_reader(use.name) or has_reading_subcommands(use.name):
        return f"{use.name} with these arguments may change something, or read elsewhere"
    return f"{use.name} is not one of the commands that only read"


def judge_command_line(command: str, places: PathContext) -> CommandJudge:
    """Return what was found in a command line for bash, told as findings and actions.

    What cannot be analysed is one finding more, which asks; what is too long to be looked at is
    dangerous.
    """
    judge = CommandJudge(places)
    try:
        judge.judge_text(command, ShellState(places.home, places.folders), ())
    except ParserMissing:
        judge.add_finding(
            DangerLevel.ASK, "cannot be analysed: tree-sitter-bash is missing", command
        )
    except CommandTooLong:
        judge.add_finding(
            DangerLevel.DANGEROUS, "holds more commands than can be looked at", command
        )
    return judge


def choose_worst(found: list[CommandFinding]) -> CommandFinding:
    """Return the first finding of the highest level; a safe one where there is none."""
    return max(found, key=lambda one: one.level, default=CommandFinding(DangerLevel.SAFE))
