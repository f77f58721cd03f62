"""Expands the words of a command as far as the text tells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fnmatch import translate
from itertools import islice, pairwise, product

from hermes.policy.patterns import regex
from hermes.policy.shell.state import MOST_VALUES, UNKNOWN, State, Stream, limit_values
from hermes.policy.shell.tree import (
    Arithmetic,
    Part,
    ProcessSubstitution,
    Script,
    Substitution,
    Text,
    Unclear,
    Variable,
    Word,
)

Run = Callable[[Script, State], Stream]
Receive = Callable[[Script, State], None]
RANGE = regex(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.-?\d+)?")
SLICE = regex(r"\s*(-?\d+)(?:\s*:\s*(-?\d+))?\s*")
NUMBERS = {"?": "0", "#": "1", "$": "4711", "!": "%last", "RANDOM": "7", "LINENO": "1"}
MOST_WORDS = 512
MOST_BRACES = 64
# A shell that makes more words from braces runs out of memory sooner or later.
MOST_EXPANDED = 200_000
LONGEST_RANGE = 1_000_000
Fields = tuple[str, ...]


class Expander:
    """Expands the words of a command. `run` returns the output of a substitution; `receive` runs
    what reads from a command."""

    def __init__(self, state: State, run: Run, receive: Receive) -> None:
        self._state = state
        self._run = run
        self._receive = receive

    def commands(self, words: Iterable[Word]) -> list[Fields]:
        """Return every list of words that the command may expand to, most likely first."""
        whole: list[list[str]] = [[]]
        for word in words:
            choices = self.fields(word)
            if len(choices) == 1:
                for begun in whole:
                    begun += choices[0]
                continue
            kept = _few([(*begun, *more) for begun, more in product(whole, choices)])
            whole = [list(each) for each in kept]
            self._state.budget.spend(sum(map(_length, kept)))
        return list(dict.fromkeys(tuple(each) for each in whole))

    def fields(self, word: Word) -> list[Fields]:
        if len(word) == 1 and isinstance(word[0], Text) and "{" not in word[0].text:
            part = word[0]
            return [(part.text if part.quoted else self._tilde(part.text),)]
        choices: list[Fields] = [()]
        for plain in braces(word):
            found = self._split(plain)
            choices = _few([(*begun, *more) for begun, more in product(choices, found)])
        return choices

    def texts(self, word: Word) -> tuple[str, ...]:
        """Return the values of a word that is not split: an assignment, a file, a here-document."""
        found = [""]
        for number, part in enumerate(word):
            if isinstance(part, Text):
                text = part.text
                if not part.quoted and number == 0:
                    text = self._tilde(text)
                found = [begun + text for begun in found]
                continue
            values = [" ".join(fields) for fields in self._values(part)]
            found = list(limit_values(begun + value for begun, value in product(found, values)))
            self._state.budget.spend(sum(map(len, found)))
        return limit_values(found)

    def _split(self, word: Word) -> list[Fields]:
        """Split a word into fields; states are finished fields and the open one, if any."""
        states: list[tuple[Fields, str | None]] = [((), None)]
        for number, part in enumerate(word):
            if isinstance(part, Text):
                text = part.text
                if not part.quoted and number == 0:
                    text = self._tilde(text)
                states = [(done, (open_ or "") + text) for done, open_ in states]
                continue
            values = self._values(part)
            quoted = not isinstance(part, Variable | Substitution) or part.quoted
            states = [
                self._grow(done, open_, value, quoted)
                for (done, open_), value in product(states[:MOST_VALUES], values[:MOST_VALUES])
            ]
            self._state.budget.spend(
                sum(_length(done) + len(open_ or "") for done, open_ in states)
            )
        return _few([done if open_ is None else (*done, open_) for done, open_ in states])

    def _grow(
        self, done: Fields, open_: str | None, value: Fields, quoted: bool
    ) -> tuple[Fields, str | None]:
        pieces = list(value) if quoted else self._cut(value)
        if not pieces:
            return (done, open_)
        # A separator at the edge leaves an empty piece there, which ends or begins a field.
        pieces[0] = (open_ or "") + pieces[0]
        whole = [piece for piece in pieces[:-1] if piece or quoted]
        return ((*done, *whole), pieces[-1] if pieces[-1] or quoted else None)

    def _cut(self, value: Fields) -> list[str]:
        separators = self._state.variables.get("IFS", (" \t\n",))[0]
        if UNKNOWN in separators:
            separators = " \t\n"
        signs = "".join(re.escape(sign) for sign in separators)
        if not signs:
            return [each for each in value if each]
        joined = separators[0].join(value)
        return re.split(f"[{signs}]+", joined) if joined else []

    def _tilde(self, text: str) -> str:
        if text[:1] != "~":
            return text
        name, slash, rest = text.partition("/")
        home = self._state.variables.get("HOME", (UNKNOWN,))[0]
        if name == "~":
            return home + slash + rest
        if name == "~+":
            return self._state.cwd + slash + rest
        if name == "~root":
            return "/root" + slash + rest
        if name == "~-":
            return UNKNOWN + slash + rest
        return f"/home/{name[1:]}" + slash + rest

    def _values(self, part: Part) -> list[Fields]:
        match part:
            case Variable():
                return self._variable(part)
            case Substitution(script=script):
                stream = self._run(script, self._state.copy())
                return [(stream.text.rstrip("\n"),)]
            case ProcessSubstitution(script=script, direction=direction):
                return [(self._tube(script, direction),)]
            case Arithmetic(parts=parts):
                texts = self.texts(parts)
                digits = all(set(text) <= set("0123456789 +*") for text in texts)
                return [("7" if digits else UNKNOWN,)]
            case Text(text=text):
                return [(text,)]

    def _tube(self, script: Script, direction: str) -> str:
        path = f"/dev/fd/{63 + len(self._state.files)}"
        if direction == "<":
            self._state.files[path] = self._run(script, self._state.copy())
        else:
            self._receive(script, self._state.copy())
            path = "/dev/null"
        return path

    def _variable(self, part: Variable) -> list[Fields]:
        argument = self.texts(part.argument) if part.argument else ("",)
        values = self._lookup(part)
        if part.prefix == "#":
            return [("7",)]
        if part.prefix == "!":
            return [each for name in values for each in self._indirect(name)]
        if not part.operator:
            return values
        return _apply_operator(part.operator, values, argument)

    def _indirect(self, name: Fields) -> list[Fields]:
        if len(name) == 1 and name[0].isidentifier():
            return self._lookup(Variable(name=name[0]))
        return [(UNKNOWN,)]

    def _lookup(self, part: Variable) -> list[Fields]:
        state, name = self._state, part.name
        if name in ("@", "*"):
            arguments = state.arguments
            return [(UNKNOWN,) if arguments is None else arguments]
        if name in NUMBERS and name not in state.variables:
            return [(NUMBERS[name],)]
        if name.isdigit() and name != "0":
            arguments = state.arguments
            if arguments is None:
                return [(UNKNOWN,)]
            number = int(name)
            return [(arguments[number - 1] if number <= len(arguments) else "",)]
        if name in state.arrays:
            return _element(state.arrays[name], part.index)
        if name == "PWD":
            return [(state.cwd,)]
        return [(value,) for value in state.variables.get(name, (UNKNOWN,))]


def _length(fields: Fields) -> int:
    return len(fields) + sum(map(len, fields))


def _few(choices: list[Fields]) -> list[Fields]:
    """Return at most `MOST_VALUES` choices: the worst-looking stay, the rest becomes unknown."""
    kept = list(dict.fromkeys(choices))
    if len(kept) <= MOST_VALUES:
        return kept
    worst = sorted(
        kept, key=lambda fields: (not fields or fields[-1][:1] not in "/~-", len(fields))
    )
    return [*worst[: MOST_VALUES - 1], (*worst[0][:1], UNKNOWN)]


def _element(items: tuple[str, ...], index: str) -> list[Fields]:
    if index in ("@", "*"):
        return [items]
    if not index or index.lstrip("-").isdigit():
        number = int(index or "0")
        return [(items[number] if -len(items) <= number < len(items) else "",)]
    return [(item,) for item in (*items[: MOST_VALUES - 1], UNKNOWN)]


def _apply_operator(operator: str, values: list[Fields], argument: tuple[str, ...]) -> list[Fields]:
    given: list[Fields] = [(each,) for each in argument]
    match operator:
        case ":-" | "-" | ":=" | "=":
            full = [value for value in values if any(value)]
            unsure = len(full) < len(values) or any(UNKNOWN in each for v in full for each in v)
            return full + given if unsure else full
        case ":+" | "+":
            return [*given, ("",)]
        case ":?" | "?":
            return values
    return [
        tuple(_trim(operator, each, given_text) for each in value)
        for value in values
        for given_text in argument
    ]


def _trim(operator: str, value: str, argument: str) -> str:
    if UNKNOWN in argument:
        return UNKNOWN
    match operator:
        case "#" | "##" | "%" | "%%":
            return _without(value, argument, operator)
        case "/" | "//" | "/#" | "/%":
            return _replace(operator, value, argument)
        case "^^" | "^":
            return value.upper() if operator == "^^" else value[:1].upper() + value[1:]
        case ",," | ",":
            return value.lower() if operator == ",," else value[:1].lower() + value[1:]
        case ":":
            return _slice(value, argument)
    return UNKNOWN


def _without(value: str, pattern: str, operator: str) -> str:
    matches = re.compile(translate(pattern)).match
    places = range(len(value) + 1)
    if operator[0] == "#":
        order = reversed(places) if operator == "##" else places
        return next((value[at:] for at in order if matches(value[:at])), value)
    order = places if operator == "%%" else reversed(places)
    return next((value[:at] for at in order if matches(value[at:])), value)


def _replace(operator: str, value: str, argument: str) -> str:
    pattern, _, new = argument.partition("/")
    if UNKNOWN in value or not pattern:
        return value
    body = translate(pattern).removeprefix("(?s:").removesuffix(r")\Z")
    anchored = {"/#": f"^(?:{body})", "/%": f"(?:{body})$"}.get(operator, body)
    return re.sub(anchored, lambda _: new, value, count=0 if operator == "//" else 1)


def _slice(value: str, argument: str) -> str:
    found = SLICE.fullmatch(argument)
    if found is None or UNKNOWN in value:
        return UNKNOWN
    start = int(found[1])
    rest = value[start:] if start >= 0 else value[max(0, len(value) + start) :]
    if found[2] is None:
        return rest
    length = int(found[2])
    return rest[:length]


def braces(word: Word) -> list[Word]:
    """Expand braces: `a{b,c}` is two words; what has quotes or expansions inside keeps them."""
    if not any(isinstance(part, Text) and not part.quoted and "{" in part.text for part in word):
        return [word]
    if any(_names_another(one, two) for one, two in pairwise(word)):
        # Commands inside still run.
        rest = (part for part in word if not isinstance(part, Text))
        return [(Text(text=UNKNOWN), *rest, Text(text=UNKNOWN))]
    if sum(part.text.count("{") for part in word if isinstance(part, Text)) > MOST_BRACES:
        raise Unclear("too many braces to follow")
    signs: list[Part] = []
    for part in word:
        if isinstance(part, Text) and not part.quoted:
            signs.extend(Text(text=sign) for sign in part.text)
        else:
            signs.append(part)
    words = [_join(each) for each in _expand(signs)]
    if len(words) > MOST_WORDS and _count(signs) > MOST_EXPANDED:
        raise Unclear("braces that expand to too many words")
    return words if len(words) <= MOST_WORDS else [*words[:MOST_WORDS], (Text(text=UNKNOWN),)]


def _names_another(part: Part, following: Part) -> bool:
    """Whether braces change a variable's name: `$x{a,b}` is `$xa $xb`, because braces come
    first."""
    return (
        isinstance(part, Variable)
        and isinstance(following, Text)
        and not following.quoted
        and following.text.startswith("{")
    )


def _expand(signs: list[Part]) -> list[list[Part]]:
    for start, sign in enumerate(signs):
        if _is(sign, "{") and (found := _alternatives(signs, start)):
            end, choices = found
            tails = _expand(signs[end + 1 :])
            made = (
                [*signs[:start], *inner, *tail]
                for choice in choices
                for inner in _expand(choice)
                for tail in tails
            )
            return list(islice(made, MOST_WORDS + 1))
    return [signs]


def _count(signs: list[Part]) -> int:
    """Return how many words the braces make, at least."""
    for start, sign in enumerate(signs):
        if _is(sign, "{") and (found := _alternatives(signs, start)):
            end, choices = found
            return sum(map(_count, choices)) * _count(signs[end + 1 :])
    return 1


def _alternatives(signs: list[Part], start: int) -> tuple[int, list[list[Part]]] | None:
    depth, choices, current = 0, [], list[Part]()
    for at in range(start + 1, len(signs)):
        sign = signs[at]
        if _is(sign, "}") and depth == 0:
            choices.append(current)
            if len(choices) > 1:
                return at, choices
            return (at, ranged) if (ranged := _range(current)) else None
        if _is(sign, ",") and depth == 0:
            choices.append(current)
            current = []
            continue
        depth += _is(sign, "{") - _is(sign, "}")
        current.append(sign)
    return None


def _range(signs: list[Part]) -> list[list[Part]]:
    text = "".join(sign.text if isinstance(sign, Text) else UNKNOWN for sign in signs)
    found = RANGE.fullmatch(text)
    if found is None:
        return []
    first, last = found[1], found[2]
    if first.lstrip("-").isdigit() and last.lstrip("-").isdigit():
        names = [str(number) for number in _steps(int(first), int(last))]
    elif len(first) == len(last) == 1:
        names = [chr(code) for code in _steps(ord(first), ord(last))]
    else:
        return []
    return [[Text(text=name)] for name in names]


def _steps(first: int, last: int) -> range:
    if abs(last - first) > LONGEST_RANGE:
        raise Unclear("braces that expand to too many words")
    if first <= last:
        return range(first, min(last, first + MOST_WORDS) + 1)
    return range(first, max(last, first - MOST_WORDS) - 1, -1)


def _is(sign: Part, text: str) -> bool:
    return isinstance(sign, Text) and not sign.quoted and sign.text == text


def _join(signs: list[Part]) -> Word:
    parts: list[Part] = []
    for sign in signs:
        last = parts[-1] if parts else None
        plain = isinstance(sign, Text) and not sign.quoted
        if plain and isinstance(sign, Text) and isinstance(last, Text) and not last.quoted:
            parts[-1] = Text(text=last.text + sign.text)
        else:
            parts.append(sign)
    return tuple(parts)
