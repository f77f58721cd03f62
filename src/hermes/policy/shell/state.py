"""The state of a followed script: variables, functions, the folder, written files."""

from __future__ import annotations

from collections.abc import Iterable

from hermes.codec.values import Value
from hermes.policy.shell.tree import Command, Unclear

# Stands for any text. Part of a string, so that prefixes and patterns still work on the rest.
UNKNOWN = "\ufffc"
# Stands for the name of something below the folder before it, never `..`, never all of it.
SOME = "\ufffb"
MOST_VALUES = 24
MOST_TEXT = 400_000
LASTING = frozenset(("HOME", "PATH", "USER", "LOGNAME", "SHELL", "IFS", "TMPDIR", "0"))


def limit_values(values: Iterable[str]) -> tuple[str, ...]:
    """Return at most `MOST_VALUES` values: the worst-looking stay, the rest becomes unknown."""
    kept = tuple(dict.fromkeys(values))
    if len(kept) <= MOST_VALUES:
        return kept
    worst = sorted(kept, key=lambda value: (value[:1] not in ("/", "~", "-"), len(value)))
    return (*worst[: MOST_VALUES - 1], UNKNOWN)


class Stream(Value):
    """What flows between commands, or the content of a file."""

    text: str = UNKNOWN
    # "network" for text from elsewhere, "decoded" for text that was hidden in other text,
    # "environment" for the variables that programs are given, "endless" for text without an end,
    # "zeros" for the same without line ends.
    origin: str = ""

    @property
    def known(self) -> bool:
        return UNKNOWN not in self.text and SOME not in self.text

    @property
    def endless(self) -> bool:
        return self.origin in ("endless", "zeros")


NOTHING = Stream(text="")
ENDLESS_FILES = {
    "/dev/zero": Stream(origin="zeros"),
    "/dev/full": Stream(origin="zeros"),
    "/dev/urandom": Stream(origin="endless"),
    "/dev/random": Stream(origin="endless"),
}
ANYTHING = Stream()


class Budget:
    """Limits the text that a script may produce: values that double with each line would fill the
    memory."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MOST_TEXT

    def spend(self, signs: int) -> None:
        self._left -= signs
        if self._left < 0:
            raise Unclear("too much text to follow")


class State:
    """The known state of a shell at one point of a script."""

    __slots__ = (
        "aliases",
        "arguments",
        "arrays",
        "budget",
        "cwd",
        "files",
        "functions",
        "links",
        "own",
        "plain",
        "variables",
    )

    def __init__(self, cwd: str, variables: dict[str, tuple[str, ...]]) -> None:
        self.cwd = cwd
        self.variables = variables  # every possible value of each
        self.arrays: dict[str, tuple[str, ...]] = {}
        self.functions: dict[str, Command] = {}
        self.aliases: dict[str, str] = {}
        self.arguments: tuple[str, ...] | None = None
        self.files: dict[str, Stream] = {}  # contents that the script has written
        self.links: dict[str, str] = {}  # targets of the symbolic links that it has made
        self.own: set[str] = set()  # paths that it has built or copied from the project
        # Words of the current command whose only unknown parts are environment variables.
        self.plain: frozenset[str] = frozenset()
        self.budget = Budget()

    def copy(self) -> State:
        """Return a copy for a subshell, which shares only files and links."""
        other = State(self.cwd, dict(self.variables))
        other.arrays = dict(self.arrays)
        other.functions = dict(self.functions)
        other.aliases = dict(self.aliases)
        other.arguments = self.arguments
        other.files = self.files
        other.links = self.links
        other.own = self.own
        other.plain = self.plain
        other.budget = self.budget
        return other

    def set(self, name: str, values: tuple[str, ...]) -> None:
        self.arrays.pop(name, None)
        self.variables[name] = limit_values(values)

    def put_back(self, values: dict[str, tuple[str, ...] | None]) -> None:
        for name, value in values.items():
            if value is None:
                self.variables.pop(name, None)
            else:
                self.variables[name] = value

    def forget(self) -> None:
        """Forget all variables: unknown code ran in this shell and may have changed them."""
        for name, values in self.variables.items():
            if name not in LASTING:
                self.variables[name] = limit_values((*values, UNKNOWN))

    def join(self, other: State) -> None:
        """Add the outcome of a branch that may have run."""
        for name in {*self.variables, *other.variables}:
            mine = self.variables.get(name, (UNKNOWN, ""))
            theirs = other.variables.get(name, (UNKNOWN, ""))
            if mine != theirs:
                self.set(name, (*theirs, *mine))
        for name, items in other.arrays.items():
            if self.arrays.get(name) != items:
                self.arrays[name] = tuple(dict.fromkeys((*self.arrays.get(name, ()), *items)))
        self.functions.update(other.functions)
        self.aliases.update(other.aliases)
        if self.cwd != other.cwd:
            self.cwd = UNKNOWN


def join_streams(streams: list[Stream]) -> Stream:
    texts = {each.text for each in streams}
    origin = next((each.origin for each in streams if each.origin), "")
    return Stream(text=texts.pop() if len(texts) == 1 else UNKNOWN, origin=origin)
