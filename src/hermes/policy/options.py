"""The options and operands of a command, as most programs read them."""

from __future__ import annotations

from collections.abc import Sequence


class Options:
    """`taking` names the options that take a value, as words: "-o --output". Short options may
    stand together, long ones may be cut short; after `--` everything is an operand."""

    def __init__(self, arguments: Sequence[str], taking: str = "", *, permute: bool = True) -> None:
        self._takes = frozenset(taking.split())
        self.pairs: list[tuple[str, str | None]] = []
        self.operands: list[str] = []
        rest = list(arguments)
        while rest:
            word = rest.pop(0)
            if word == "--":
                self.operands += rest
                break
            if word[:1] != "-" or word == "-":
                self.operands.append(word)
                if not permute:
                    self.operands += rest
                    break
            elif word.startswith("--"):
                self._long(word, rest)
            else:
                self._short(word, rest)

    def _long(self, word: str, rest: list[str]) -> None:
        name, equals, value = word.partition("=")
        if equals:
            self.pairs.append((name, value))
        elif name in self._takes and rest:
            self.pairs.append((name, rest.pop(0)))
        else:
            self.pairs.append((name, None))

    def _short(self, word: str, rest: list[str]) -> None:
        if word in self._takes:
            self.pairs.append((word, rest.pop(0) if rest else None))
            return
        for place in range(1, len(word)):
            name = "-" + word[place]
            if name in self._takes:
                value = word[place + 1 :]
                self.pairs.append((name, value or (rest.pop(0) if rest else None)))
                return
            self.pairs.append((name, None))

    def has(self, *names: str) -> bool:
        return any(_meant(given, name) for given, _ in self.pairs for name in names)

    def value(self, *names: str) -> str | None:
        """The last value given."""
        return next(iter(reversed(self.values(*names))), None)

    def values(self, *names: str) -> list[str]:
        return [
            value
            for given, value in self.pairs
            for name in names
            if value is not None and _meant(given, name)
        ]


def _meant(given: str, name: str) -> bool:
    """GNU programs take the beginning of a long option for the whole."""
    return given == name or (len(given) > 3 and given[:2] == "--" and name.startswith(given))
