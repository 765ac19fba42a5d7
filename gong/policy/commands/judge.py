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
checks), then does the work that `work` lists: sudo runs rm, a shell its input and its files. A
program that adds nothing of its own, such as `time`, leaves the verdict to what it runs; any other
is asked about unless `is_only_reading`. The first finding of the highest level is the verdict:

    DANGEROUS, "removes a system, home or workspace folder", part: sudo rm -rf "$x"
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ...shell.expansion import (
    Argument,
    CommandTooLong,
    ShellState,
    expand_word,
    expand_words,
    is_fully_expanded,
)
from ...shell.parser import parse_command_line
from ...shell.words import ParserMissing
from .analysis import CommandAnalysis
from .checks import find_dangers
from .effects import build_run_action, build_write_action
from .finding import CommandFinding, DangerLevel
from .hidden import WrittenFiles, find_hidden_commands
from .invocation import Invocation, PathContext, resolve_cd_target
from .programs import explain_unknown_program, is_only_handing_on, is_only_reading_program
from .scope import (
    Scope,
    apply_builtin,
    build_invocation,
    judge_redirection,
    list_given_texts,
    list_input_paths,
    resolve_substitutions,
)
from .variables import (
    assign_values,
    collect_values,
    judge_assignment,
    list_assigned_outputs,
    list_shown_credentials,
    quote_obeyed_variable,
    read_first_word,
)
from .work import (
    Aliases,
    AskReason,
    DangerReason,
    ProgramRun,
    TextKind,
    TextRun,
    TooDeep,
    VariableSet,
    list_called_programs,
    list_fed_work,
    list_script_work,
    list_value_work,
    list_wrapped_work,
)
from .wrappers import find_inner_commands

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ...shell.expansion import Arguments, ParsedCommandLine, Redirect, SimpleCommand
    from .work import Work


_MAX_DEPTH = 8
"""Maximum commands inside of one another."""
_MAX_STEPS = 8000
"""Maximum readings of commands in one command line; four arguments count as much."""
_PARSING_STEPS = 5
"""Steps that reading a text costs, whatever it contains."""
_MAX_TIMES = 8
"""How often the same text is looked at, after the first time."""
_SHREDS = re.compile(r"[;&|\n(){}`]+")
_MAX_SHREDS = 200
_PATTERN = re.compile(r"[!?*+@]\([^()]*\)")
_DOUBLED = re.compile(r"([()])(?=\1)")
_BRACE = re.compile(r"\{([^{}\s]*,[^{}\s]*)\}")
_SEPARATORS = re.compile(r"[\s'\"\\;|&()$`]+")


@dataclass(slots=True)
class _CommandJudge:
    """Goes through one command line, and is used for no other.

    A text contains commands, a command is a program, and a program may run texts and programs:
    `_perform` judges each of them as it comes. `steps` and `depth` bound the work.
    """

    places: PathContext
    analysis: CommandAnalysis = field(default_factory=CommandAnalysis)
    depth: int = 0
    steps: int = 0
    """How much was judged so far."""
    functions: set[str] = field(default_factory=set)
    aliases: Aliases = field(default_factory=Aliases)
    written: WrittenFiles = field(default_factory=WrittenFiles)
    loose: set[str] = field(default_factory=set)
    """Names set in loops and branches: they keep every value they ever may have."""
    running: set[str] = field(default_factory=set)
    """Texts that are being looked at: one may name itself."""
    looked_at: Counter[str] = field(default_factory=Counter)
    """Texts of files and aliases whose dangers were looked for, and how often."""

    def judge_text(self, text: str, state: ShellState, feeders: tuple[SimpleCommand, ...]) -> None:
        """Judge a text of shell; raises CommandTooLong, and ParserMissing."""
        self._count_steps(_PARSING_STEPS)
        view = parse_command_line(text)
        self.functions |= view.functions
        if not view.whole:
            self.analysis.add_finding(DangerLevel.ASK, "cannot be taken apart", text)
            self._judge_shreds(text, state)
        for bomb in view.bombs:
            self.analysis.add_finding(DangerLevel.DANGEROUS, "starts itself without end", bomb)
        self.loose |= {
            name.rstrip("+")
            for command in view.commands
            if not command.certain
            for name, _ in command.assignments
        }
        first = state.folders
        self._judge_commands(view, state, feeders)
        if not all(command.certain for command in view.commands):
            # a loop's start sees what its end has set
            state.folders = tuple(dict.fromkeys((*first, *state.folders)))
            self._judge_commands(view, state, feeders)

    def _judge_shreds(self, text: str, state: ShellState) -> None:
        """Look for danger in a text that cannot be taken apart."""
        if self.depth >= _MAX_DEPTH:
            return
        self.depth += 1
        for fragment in _list_shreds(text):
            with self.analysis.keep_only_dangers(runs=True):
                self.judge_text(fragment, state.copy(), ())
        self.depth -= 1

    def _count_steps(self, steps: int) -> None:
        """Count what is looked at; raises CommandTooLong."""
        self.steps += steps
        if self.steps > _MAX_STEPS:
            raise CommandTooLong

    def _judge_commands(
        self, view: ParsedCommandLine, state: ShellState, feeders: tuple[SimpleCommand, ...]
    ) -> None:
        _bind_function_arguments(view, state)
        states: dict[tuple[int, ...], ShellState] = {(): state}
        for command in view.commands:  # a subshell starts with a copy of the state around it
            scope = command.scope
            known = next(scope[:n] for n in range(len(scope), -1, -1) if scope[:n] in states)
            states[scope] = states[scope] if scope == known else states[known].copy()
            self._judge_command(command, states[scope], (*feeders, *command.feeders))

    def _judge_command(
        self, command: SimpleCommand, state: ShellState, feeders: tuple[SimpleCommand, ...]
    ) -> None:
        """Judge what a command redirects and assigns, then each of its readings as a program."""
        state.leave_chain(command.chain)
        uses = self.analysis.uses
        at = Scope(command, state, replace(self.places, folders=state.folders), feeders)
        targets = [
            target
            for redirect in command.redirects
            for target in self._judge_redirect(redirect, at)
        ]
        obeyed = self._judge_assignments(at)
        words = tuple(resolve_substitutions(word, state, uses) for word in command.words)
        readings = [arguments for arguments in expand_words(words, state) if arguments]
        for arguments in readings:
            self._judge_program(arguments, at, obeyed)
            fed = tuple(list_given_texts(at, uses)) if arguments[0].text == "read" else ()
            apply_builtin(arguments, state, fed, certain=command.certain and len(readings) == 1)
        for text in self.written.keep(uses.get(command, ()), targets):
            self._perform(TextRun(text, TextKind.POSSIBLE), at)
        for name in list_shown_credentials(command, state):
            self._perform(AskReason(f"shows {name}, which may be a credential"), at)
        if not is_fully_expanded(words, state):
            self._perform(AskReason("may expand to too many commands"), at)

    def _judge_redirect(self, redirect: Redirect, at: Scope) -> Iterator[Argument]:
        """Judge a redirection and yield the files it writes."""
        if redirect.operator == "<<":
            return
        word = resolve_substitutions(redirect.target, at.state, self.analysis.uses)
        for target in (target for reading in expand_words((word,), at.state) for target in reading):
            level, reason = judge_redirection(redirect.operator, target, at.places)
            if level:
                action = None
                if ">" in redirect.operator:
                    action = build_write_action(redirect.source, reason, target, at.places)
                self.analysis.add_finding(level, reason, redirect.source, action)
            if ">" in redirect.operator:
                if level and target.known:  # neither a descriptor nor /dev/null
                    self.analysis.outputs.append(at.places.paths(target))
                yield target
            elif target.known:
                self.analysis.inputs += list_input_paths(target, at.places)

    def _judge_assignments(self, at: Scope) -> tuple[str, ...]:
        """Judge what is assigned; return the variables that the program obeys, as words."""
        command, uses = at.command, self.analysis.uses
        values = collect_values(command, at.state, uses)
        first = read_first_word(command)
        obeyed: list[str] = []
        for name, possible in values.items():
            if (name, first) != ("IFS", "read"):  # there it parts what is read and nothing else
                self._judge_variable(name, possible, at, for_program=bool(first))
                word = quote_obeyed_variable(name, possible, self.places, for_program=bool(first))
                obeyed += [word] if word else []
        for text in list_assigned_outputs(command, uses):
            self._perform(TextRun(text, TextKind.POSSIBLE), at)
        assign_values(command, values, at.state, uses, self.loose)
        if obeyed and not command.words:
            reason, words = "sets variables, which other programs may obey", tuple(obeyed)
            self.analysis.actions.append(
                CommandFinding(DangerLevel.ASK, command.source, reason, "run", words, code=True)
            )
        return tuple(obeyed)

    def _judge_variable(
        self, name: str, values: Sequence[str | None], at: Scope, *, for_program: bool
    ) -> None:
        """Judge the values a variable is given; the program that obeys it shows it as a word."""
        level, reason = judge_assignment(
            name, values, exported=self.places.exported, for_program=for_program
        )
        if not level:
            return
        actions = self.analysis.actions
        before = len(actions)
        self.analysis.add_finding(level, reason, at.command.source)
        if quote_obeyed_variable(name, values, self.places, for_program=for_program):
            del actions[before:]  # the program's own action shows it
        self._perform_all(list_value_work(values, at.places, self.written), at)

    def _judge_program(self, arguments: Arguments, at: Scope, obeyed: tuple[str, ...] = ()) -> None:
        """Judge one program with its arguments, and what it runs; raises CommandTooLong.

        `obeyed` are variables set for it, as words.
        """
        self._count_steps(1 + len(arguments) // 4)
        first, source, actions = arguments[0], at.command.source, self.analysis.actions
        use = build_invocation(arguments, at, self.analysis.uses)
        self.analysis.add_use(at.command, use)  # what may or may not run is judged for both
        dangers = [*map(DangerReason, find_dangers(use))]
        self._perform_all(dangers, at)
        before = len(actions)
        if self.depth < _MAX_DEPTH:
            self._perform_all(list_called_programs(use, self.functions), at)
        commands = [*find_inner_commands(use.name, use.arguments)]
        self._perform_all(list_wrapped_work(use, commands, is_deepest=self.depth >= _MAX_DEPTH), at)
        self._perform_all(list_script_work(first, use, self.written), at)
        self._perform_all(list_fed_work(use, at.command, self.analysis.uses), at)
        self.aliases.record(use)
        self._perform_all(self.aliases.list_work(use), at)
        inner = tuple(actions[before:])
        clear = bool(commands) and all(command.clear for command in commands)
        reads = is_only_reading_program(first, use, self.functions)
        if not clear and not dangers and not reads:
            self._perform(AskReason(explain_unknown_program(use)), at)
            for text in find_hidden_commands(use):
                self._perform(TextRun(text, TextKind.POSSIBLE), at)
        actions[before:] = inner
        passes_on = use.name in self.functions or is_only_handing_on(use, inner)
        if obeyed or not (clear or reads or passes_on):
            own = build_run_action(first, use, obeyed, source, explain_unknown_program(use))
            actions[before:] = [own._replace(inner=inner)]

    def _perform_all(self, works: Iterable[Work], at: Scope) -> None:
        for work in works:
            self._perform(work, at)

    def _perform(self, work: Work, at: Scope) -> None:
        """Judge what a command runs, by the table of `work`."""
        match work:
            case DangerReason(reason):
                self.analysis.add_finding(DangerLevel.DANGEROUS, reason, at.command.source)
            case AskReason(reason):
                self.analysis.add_finding(DangerLevel.ASK, reason, at.command.source)
            case VariableSet(name, value):
                self._judge_variable(name, (value,), at, for_program=True)
            case TooDeep(text):
                self._ask_about_depth(text, at)
            case ProgramRun():
                self._judge_program_run(work, at)
            case TextRun(kind=TextKind.SCRIPT):
                self._judge_script(work, at)
            case TextRun(kind=TextKind.CODE):
                with self.analysis.keep_only_dangers(runs=True):
                    self._judge_script(work, at)
            case TextRun(text, kind):
                if text in self.running or self.looked_at[text] > _MAX_TIMES:
                    return
                self.running.add(text)
                self.looked_at[text] += 1
                with self.analysis.keep_only_dangers(runs=kind is TextKind.WRITTEN):
                    self._judge_script(work, at)
                self.running.discard(text)

    def _judge_program_run(self, run: ProgramRun, at: Scope) -> None:
        """Judge a program that another one runs."""
        inner = at if run.folder is None else _move_scope(at, run.folder)
        self.depth += 1
        if run.likely:
            with self.analysis.keep_only_dangers():
                self._judge_program(run.arguments, inner)
        else:
            self._judge_program(run.arguments, inner, run.obeyed)
        self.depth -= 1

    def _judge_script(self, run: TextRun, at: Scope) -> None:
        """Judge a text that a shell of its own runs."""
        state = at.state.copy()
        for number, argument in enumerate(run.positional):
            state.variables[str(number)] = (argument.text if argument.known else None,)
        if run.positional:
            texts = tuple(argument.text for argument in run.positional[1:] if argument.text)
            values = tuple(dict.fromkeys((" ".join(texts), *texts)))
            state.variables |= {"@": values, "*": values}
        self.depth += 1
        if self.depth <= _MAX_DEPTH:
            self.judge_text(run.text, state, at.feeders)
        else:
            self._ask_about_depth(run.text, at)
        self.depth -= 1

    def _ask_about_depth(self, text: str, at: Scope) -> None:
        """Ask about a text inside of too many others; its words may be a danger all the same."""
        self._perform(AskReason("runs commands nested too deeply"), at)
        words = tuple(Argument(word) for word in _SEPARATORS.split(text) if word)
        self._count_steps(1 + len(words) // 4)
        self._perform_all(map(DangerReason, find_dangers(Invocation("env", words, at.places))), at)


def _list_shreds(text: str) -> list[str]:
    """Return parts and readings of a text that cannot be taken apart; raises CommandTooLong.

    Among them the text with `!(a)` and the like, which the grammar does not know, as `*`.
    """
    parts = dict.fromkeys(part.strip() for part in _SHREDS.split(text))
    shreds = [part for part in parts if part and part != text.strip()]
    if len(shreds) > _MAX_SHREDS:
        raise CommandTooLong
    plain = _PATTERN.sub("*", text)
    spread = _BRACE.sub(lambda brace: brace[1].replace(",", " "), text)  # `{rm,-rf,x}`
    parted = _DOUBLED.sub(r"\1 ", text)  # `((a | b) )` may be two subshells
    return [*shreds, *(reading for reading in {plain, spread, parted} if reading != text)]


def _bind_function_arguments(view: ParsedCommandLine, state: ShellState) -> None:
    """Add to `$1`, `$2`, `$@` and `$*` what the functions of a text are called with."""
    for command in view.commands:
        name, *words = command.words or ((),)
        if "".join(piece.text for piece in name) in view.functions:
            values = [expand_word(word, state) for word in words]
            every = tuple(text for possible in values for text in possible)
            numbered = {str(number): possible for number, possible in enumerate(values, 1)}
            for variable, possible in {**numbered, "@": every, "*": every}.items():
                before = state.variables.get(variable, ())
                state.variables[variable] = (*before, *possible)


def _move_scope(at: Scope, folder: Argument) -> Scope:
    """Return the scope of a command that its wrapper runs in another folder."""
    known = folder.text if folder.known and not folder.glob else None
    folders = tuple(
        None if known is None else resolve_cd_target(known, start, at.places.home)
        for start in at.places.folders
    )
    return replace(at, places=replace(at.places, folders=folders))


def judge_command_line(command: str, places: PathContext) -> CommandAnalysis:
    """Return what a command line for bash does, as findings and actions.

    What cannot be analysed is one finding more, which asks; what is too long to be looked at is
    dangerous.
    """
    judge = _CommandJudge(places)
    try:
        judge.judge_text(command, ShellState(places.home, places.folders), ())
    except ParserMissing:
        judge.analysis.add_finding(
            DangerLevel.ASK, "cannot be analysed: tree-sitter-bash is missing", command
        )
    except CommandTooLong:
        judge.analysis.add_finding(
            DangerLevel.DANGEROUS, "holds more commands than can be looked at", command
        )
    return judge.analysis


def choose_worst(findings: list[CommandFinding]) -> CommandFinding:
    """Return the first finding of the highest level; a safe one where there is none."""
    return max(
        findings, key=lambda finding: finding.level, default=CommandFinding(DangerLevel.SAFE)
    )
