"""Follows a script as a shell would run it, and collects findings about its commands."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from hermes.codec.values import replace
from hermes.policy.call import Call, Check, bare_name, new_program, quote_words
from hermes.policy.exposure import check_shown_variables, check_words, plain_words
from hermes.policy.findings import Finding, Level
from hermes.policy.path_effects import Paths
from hermes.policy.places.spelling import fold_lookalikes, why_disguised
from hermes.policy.programs.catalogue import check_call
from hermes.policy.programs.records import is_known, known_names, record_of
from hermes.policy.redirections import assign, open_files
from hermes.policy.shell.expansion import Expander
from hermes.policy.shell.functions import BOMB, is_fork_bomb, spawns_endlessly, writes_endlessly
from hermes.policy.shell.parser import DECLARING, parse
from hermes.policy.shell.state import ANYTHING, NOTHING, SOME, UNKNOWN, State, Stream, join_streams
from hermes.policy.shell.tree import (
    Block,
    Command,
    Function,
    Pipeline,
    Script,
    Simple,
    Text,
    Unclear,
)

MOST_COMMANDS = 2_000
DEEPEST = 24
MOST_WORDS = 5_000
# For a pattern in place of a command: how many programs are tried, and which if more match.
MOST_GUESSES = 60
MOST_FOLDERS = 12
# Programs that pass their input on unchanged.
UNCHANGED = ("cat", "tee", "pv")
WORST = ("rm", "dd", "find", "mkfs", "chmod", "chown", "mv", "shutdown", "reboot", "sh", "bash")


class ScriptWalk:
    """Follows one script once, as bash would run it, and collects findings."""

    def __init__(
        self,
        paths: Paths,
        confined: Callable[[], bool] = lambda: False,
        check: Check = check_call,
    ) -> None:
        self.paths = paths
        self._check = check
        self.confined = confined
        self.findings: list[Finding] = []
        self.commands: list[str] = []
        self.touched: dict[str, None] = {}
        self._decoded = False
        self._guessing = False
        self._depth = 0
        self._inside: list[int] = []
        # Inside the text of an alias, its own name means the program.
        self._renamed: list[str] = []
        self._uncalled: dict[int, tuple[Command, State]] = {}
        self._folders: dict[str, None] = {}
        self._later: list[tuple[str, State]] = []

    def run(self, script: str, state: State) -> None:
        """Follow the script, and then the functions and traps that it leaves in the shell."""
        self.text(script, state, ANYTHING)
        while self._uncalled:
            body, left = self._uncalled.popitem()[1]
            left.arguments = None
            self._command(body, left, ANYTHING)
        for text, left in self._later[:]:
            # A trap may run in any folder that the script has entered.
            for folder in (left.cwd, *self._folders)[:MOST_FOLDERS]:
                sprung = left.copy()
                sprung.cwd = folder
                self.text(text, sprung, ANYTHING)

    def later(self, script: str, state: State) -> None:
        """Follow a text at the end, with the variables of that time."""
        self._later.append((script, state))

    def add(self, finding: Finding) -> None:
        if not finding.command and self.commands:
            finding = replace(finding, command=self.commands[-1])
        self.findings.append(finding)

    def ask(self, category: str, reason: str) -> None:
        self.add(Finding(level=Level.ASKED, category=category, reason=reason))

    # Scripts.

    def text(self, script: str, state: State, stdin: Stream) -> Stream:
        """Follow a script given as text. Unknown text needs approval."""
        if UNKNOWN in script:
            self.ask("obfuscated", "It runs text that is known only at run time.")
        if self._decoded and self._depth:
            self.ask("obfuscated", "It runs decoded text.")
        if why := why_disguised(script.replace(UNKNOWN, "").replace(SOME, "")):
            self.ask("obfuscated", why)
        self._deeper()
        try:
            return self.script(parse(script), state, stdin)
        except Unclear as unclear:
            self.unclear(str(unclear))
            self._pieces(script, state)
            return ANYTHING
        finally:
            self._depth -= 1

    def unclear(self, what: str) -> None:
        self.ask("unclear", f"It contains {what}, so its effect cannot be determined.")

    def _pieces(self, script: str, state: State) -> None:
        """Follow the lines of a text that cannot be parsed as a whole."""
        if BOMB.search(script):
            self._never("it is a fork bomb")
        for line in re.split(r"[;\n]|&&|\|\|", script)[:200]:
            try:
                self.script(parse(line.strip(" \t;&|()")), state.copy(), ANYTHING)
            except Unclear:
                continue

    def script(self, script: Script, state: State, stdin: Stream) -> Stream:
        streams = [self._command(command, state, stdin) for command in script.commands]
        if any(each.endless for each in streams):
            self.ask("disk", "It reads from a source that never ends.")
        if len(streams) == 1:
            return streams[0]
        origin = next((each.origin for each in streams if each.origin), "")
        return Stream(text="".join(each.text for each in streams), origin=origin)

    def _command(self, command: Command, state: State, stdin: Stream) -> Stream:
        match command:
            case Simple():
                return self._simple(command, state, stdin)
            case Pipeline(commands=commands):
                for each in commands:
                    stdin = self._command(each, state.copy(), stdin)
                return stdin
            case Function(name=name, body=body):
                self._define(name, body, state)
                return NOTHING
            case Block():
                return self._block(command, state, stdin)

    def _define(self, name: str, body: Command, state: State) -> None:
        state.functions[name] = body
        if name == "command_not_found_handle":
            self.ask("shell_escape", "It sets a handler for missing commands.")
        self._uncalled[id(body)] = (body, state.copy())
        if is_fork_bomb(name, body, state.functions):
            self._never("it is a fork bomb")

    def _never(self, reason: str) -> None:
        self.add(Finding(level=Level.NEVER, category="power", reason=reason))

    def _block(self, block: Block, state: State, stdin: Stream) -> Stream:
        expander = self._expander(state, stdin)
        stdin, written = open_files(self, expander, block.redirects, state, stdin)
        out: Stream
        match block.kind:
            case "test":
                for word in block.words:
                    expander.texts(word)
                return NOTHING
            case "subshell":
                out = self.script(block.bodies[0], state.copy(), stdin)
            case "group":
                out = self.script(block.bodies[0], state, stdin)
            case "for":
                values = [each for words in expander.commands(block.words) for each in words]
                state.set(block.variable, tuple(values) or ("",))
                out = self._loop(block, state, stdin)
            case "loop":
                if spawns_endlessly(block):
                    self._never("it starts processes without end")
                elif writes_endlessly(block):
                    self.ask("disk", "It writes until the disk is full.")
                for word in block.words:
                    expander.texts(word)
                out = self._loop(block, state, stdin)
            case "if" | "case":
                for word in block.words:
                    expander.texts(word)
                out = self._branches(block, state, stdin)
        for path in written:
            state.files[path] = out
        return out

    def _loop(self, block: Block, state: State, stdin: Stream) -> Stream:
        """Follow the body twice, because a round may use what the previous round set."""
        out = NOTHING
        before = len(self.commands)
        for _ in range(2):
            once = state.copy()
            for body in block.bodies:
                out = self.script(body, once, stdin)
            changed = once.variables != state.variables or once.cwd != state.cwd
            state.join(once)
            if not changed or len(self.commands) == before:
                break
        return Stream(text=out.text + UNKNOWN if out.text else "", origin=out.origin)

    def _branches(self, block: Block, state: State, stdin: Stream) -> Stream:
        streams = []
        for body in block.bodies:
            branch = state.copy()
            streams.append(self.script(body, branch, stdin))
            state.join(branch)
        texts = {each.text for each in streams if each.text}
        origin = next((each.origin for each in streams if each.origin), "")
        return Stream(text=texts.pop() if len(texts) == 1 else UNKNOWN, origin=origin)

    # Simple commands.

    def _expander(self, state: State, stdin: Stream) -> Expander:
        def run(script: Script, inner: State) -> Stream:
            return self.script(script, inner, stdin)

        def receive(script: Script, inner: State) -> None:
            self.script(script, inner, ANYTHING)

        return Expander(state, run, receive)

    def _simple(self, simple: Simple, state: State, stdin: Stream) -> Stream:
        expander = self._expander(state, stdin)
        choices = expander.commands(simple.words)
        before = {each.name: state.variables.get(each.name) for each in simple.assignments}
        for assignment in simple.assignments:
            assign(self, assignment, expander, state)
        written: list[str] = []
        if simple.redirects:
            stdin, written = open_files(self, expander, simple.redirects, state, stdin)
        if not simple.words:
            for path in written:
                state.files[path] = NOTHING
            return stdin if simple.redirects else NOTHING
        self._look(simple, choices, state, stdin)
        out = join_streams([self.call(words, state, stdin) for words in choices])
        if not any(words and words[0] in DECLARING for words in choices):
            # Set for this one command only.
            state.put_back(before)
        last = choices[-1][-1] if choices[-1:] and choices[-1] else ""
        state.variables["_"] = (last,)
        if written and out.endless:
            self.ask("disk", "It writes until the disk is full.")
        for path in written:
            state.files[path] = out
        return NOTHING if written else out

    def _look(
        self, simple: Simple, choices: list[tuple[str, ...]], state: State, stdin: Stream
    ) -> None:
        """Check the words as they are written, whatever the program."""
        if self._decoded and not all(isinstance(part, Text) for part in simple.words[0]):
            self.ask("obfuscated", "The name of its command is decoded from other text.")
        if not choices or not choices[0]:
            return
        state.plain = plain_words(simple.words[1:], state)
        name = bare_name(choices[0][0])
        record = record_of(name)
        if "shows_variables" in record.flags:
            call = Call(name, choices[0][1:], state, stdin, self, record)
            targets = (redirect.target for redirect in simple.redirects)
            check_shown_variables(call, (*simple.words[1:], *targets), state)

    def call(self, words: Sequence[str], state: State, stdin: Stream) -> Stream:
        """Follow one command. Every command that runs passes here."""
        if not words:
            return NOTHING
        if len(self.commands) > MOST_COMMANDS:
            raise Unclear("too many commands to follow")
        if len(words) > MOST_WORDS:
            raise Unclear("too many words to follow")
        name, *arguments = words
        self.commands.append(quote_words((bare_name(name), *arguments)))
        self._folders[state.cwd] = None
        if UNKNOWN in name:
            return self._unknown_name(name, arguments, state, stdin)
        defined = None
        if name in state.functions:
            defined = self._function(name, arguments, state, stdin)
        elif name in state.aliases and name not in self._renamed:
            defined = self._alias(name, arguments, state, stdin)
        if defined is not None and not is_known(name):
            return defined
        # Behind `command` and in a new shell the name still means the program.
        plain = fold_lookalikes(name)
        if plain != name:
            self.ask("obfuscated", f"`{name}` only looks like `{plain}`.")
        if plain == name != "[" and any(sign in name for sign in "*?["):
            out = self._pattern_name(name, arguments, state, stdin)
        else:
            out = self._program(plain, arguments, state, stdin)
        return defined or out

    def outside(self, words: Sequence[str], state: State, stdin: Stream) -> Stream:
        """Follow a command that a program runs, which sees no functions and aliases."""
        if not words or (words[0] not in state.functions and words[0] not in state.aliases):
            return self.call(words, state, stdin)
        functions, aliases = state.functions, state.aliases
        state.functions, state.aliases = {}, {}
        out = self.call(words, state, stdin)
        state.functions = {**functions, **state.functions}
        state.aliases = {**aliases, **state.aliases}
        return out

    def _program(self, name: str, arguments: Sequence[str], state: State, stdin: Stream) -> Stream:
        bare = bare_name(name)
        if "../" in bare and UNKNOWN not in state.cwd:
            bare = bare_name(posixpath.normpath(posixpath.join(state.cwd, bare)))
        call = Call(bare, arguments, state, stdin, self, record_of(bare))
        check_words(call)
        self._deeper()
        try:
            if "/" not in bare and (found := new_program(bare, state)):
                self._new(*found, call)
            out = self._check(call)
        finally:
            self._depth -= 1
        if out is None:
            return ANYTHING
        self._decoded = self._decoded or out.origin == "decoded"
        if out.origin == "own" and bare not in UNCHANGED:
            # The output of a program is no file of the project, even if it is made from one.
            return replace(out, origin="file")
        return out

    def _new(self, path: str, stream: Stream, call: Call) -> None:
        if stream.known and stream.text:
            inner = Call(path, call.arguments, call.state.copy(), call.stdin, self)
            self._check(inner)
        else:
            call.ask("unknown_program", f"It runs {path}, which is new.")

    def _deeper(self) -> None:
        if self._depth >= DEEPEST:
            raise Unclear("commands nested too deeply")
        self._depth += 1

    def _function(self, name: str, arguments: Sequence[str], state: State, stdin: Stream) -> Stream:
        body = state.functions[name]
        self._uncalled.pop(id(body), None)
        # A function may define another one of its own name, so the name does not show recursion.
        if id(body) in self._inside or len(self._inside) > DEEPEST:
            return ANYTHING
        self._inside.append(id(body))
        outer, state.arguments = state.arguments, tuple(arguments)
        out = self._command(body, state, stdin)
        state.arguments = outer
        self._inside.pop()
        return out

    def _alias(self, name: str, arguments: Sequence[str], state: State, stdin: Stream) -> Stream:
        self._renamed.append(name)
        out = self.text(f"{state.aliases[name]} {quote_words(arguments)}", state, stdin)
        self._renamed.pop()
        return out

    def _unknown_name(
        self, name: str, arguments: Sequence[str], state: State, stdin: Stream
    ) -> Stream:
        self.ask("unclear", "The name of the command is known only at run time.")
        # The unknown part may be nothing, or a word like `sudo` before the real command.
        rest = name.replace(UNKNOWN, "")
        inner = [rest, *arguments] if rest else list(arguments)
        if inner and self._depth < DEEPEST:
            self.call(inner, state.copy(), stdin)
        return ANYTHING

    def _pattern_name(
        self, name: str, arguments: Sequence[str], state: State, stdin: Stream
    ) -> Stream:
        self.ask("obfuscated", f"`{name}` is a pattern, so it may run any program that fits it.")
        pattern = name.rpartition("/")[2]
        fitting = [each for each in known_names() if len(each) > 1 and fnmatchcase(each, pattern)]
        if len(fitting) > MOST_GUESSES:
            fitting = [each for each in WORST if each in fitting]
        if not arguments and not pattern.strip("*?"):
            # It names no program at all.
            return ANYTHING
        if not self._guessing:
            # Guesses inside guesses would multiply.
            self._guessing = True
            for each in fitting:
                self._program(each, arguments, state.copy(), stdin)
            self._guessing = False
        return ANYTHING
