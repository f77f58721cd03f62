"""Reads the sample secrets in the tests of two public rule sets, which are written in Go.

A sample is a text and the secret in it; "" if only the text is known. What this small evaluator
does not understand is left out.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

from hermes.codec.values import Value

_TOKEN = re.compile(
    r"\s*(?://[^\n]*\s*)*(?:(?P<raw>`[^`]*`)|(?P<text>\"(?:\\.|[^\"\\\n])*\")"
    r"|(?P<name>[A-Za-z_][\w.]*)|(?P<sign>\.\.\.|\[\]string\{|[+(){},:]))"
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
_SET = {"Numeric": "0-9", "Hex": "a-f0-9", "AlphaNumeric": "a-z0-9"}
_SET |= {"AlphaNumericExtendedShort": "a-z0-9_-", "AlphaNumericExtended": r"a-z0-9=_\-"}
_SET |= {"AlphaNumericExtendedLong": r"a-z0-9\/=_\+\-"}
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_CONSTANT = re.compile(r"(?m)^\s*(?:var |const )?(?P<name>\w+)\s*(?::?=)\s*(?=[\"`f])")
_CASE = re.compile(r"input:\s*")
_WANT = re.compile(r"\s*,\s*want:\s*(?=\[\]string\{)")
_POSITIVES = re.compile(r"\btps\s*:?=\s*(?:append\(tps,\s*)?")
_TEMPLATE = re.compile(r"(?m)^\s*\"[^\"\n]+\":\s*(?P<template>`[^`\n]*`|\"(?:\\.|[^\"\\\n])*\"),")
_MOST_REPEATS = 8
_SEED = 7


class Sample(Value):
    text: str
    secret: str


class _Unclear(Exception):
    pass


class _Reader:
    """Evaluates a Go expression of strings; a list of strings is a list."""

    def __init__(self, text: str, at: int, calls: dict[str, Callable[..., Any]]) -> None:
        self.text, self.at, self.calls = text, at, calls

    def value(self, names: dict[str, Any]) -> Any:
        found = self._part(names)
        while self._accept("+"):
            found = found + self._part(names)
        return found

    def _part(self, names: dict[str, Any]) -> Any:
        token = self._next()
        if token["raw"] is not None:
            return token["raw"][1:-1]
        if token["text"] is not None:
            return _unescape(token["text"][1:-1])
        if token["sign"] == "[]string{":
            return list(self._arguments("}", names))
        name = token["name"]
        if name and self._accept("("):
            call = self.calls.get(name.rpartition(".")[2])
            if call is None:
                raise _Unclear
            return call(*self._arguments(")", names))
        if name not in names:
            raise _Unclear
        return names[name]

    def _arguments(self, closing: str, names: dict[str, Any]) -> Iterator[Any]:
        while not self._accept(closing):
            yield self.value(names)
            self._accept("...")
            if not self._accept(",") and not self._accept(closing):
                raise _Unclear
            elif self.text[self.at - 1] == closing:
                return

    def _accept(self, sign: str) -> bool:
        token = _TOKEN.match(self.text, self.at)
        if token and token["sign"] == sign:
            self.at = token.end()
            return True
        return False

    def _next(self) -> re.Match[str]:
        token = _TOKEN.match(self.text, self.at)
        if token is None:
            raise _Unclear
        self.at = token.end()
        return token


def _unescape(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) > 1 else _ESCAPED.get(code, code)

    return _ESCAPE.sub(one, text)


def _format(template: str, *values: str) -> str:
    for value in values:
        template = re.sub(r"%[svq]", value.replace("\\", r"\\"), template, count=1)
    return template


def gitleaks_samples(rules: Iterator[str], generator: str) -> Iterator[Sample]:
    """Yield the positive examples of the rules; `generator` is the source of their templates."""
    templates = [_literal(match["template"]) for match in _TEMPLATE.finditer(generator)]
    dice = random.Random(_SEED)

    def filled(name: str, secret: str) -> list[Sample]:
        return [Sample(text=_fill(each, name, secret), secret=secret) for each in templates]

    calls: dict[str, Callable[..., Any]] = {
        **{name: lambda size, cs=chars: f"[{cs}]{{{size}}}" for name, chars in _SET.items()},
        "Hex8_4_4_4_12": lambda: _UUID,
        "NewSecret": lambda pattern: _matching(pattern, dice),
        "GenerateSampleSecrets": filled,
        "GenerateSampleSecret": lambda i, s: Sample(text=f'{i}_api_token = "{s}"', secret=s),
        "Sprintf": _format,
    }
    for source in rules:
        for start in _POSITIVES.finditer(source):
            try:
                found = _Reader(source, start.end(), calls).value(_constants(source, calls))
            except (_Unclear, re.error, TypeError):
                continue
            for each in found if isinstance(found, list) else [found]:
                for one in each if isinstance(each, list) else [each]:
                    yield one if isinstance(one, Sample) else Sample(text=one, secret="")


def _literal(text: str) -> str:
    return text[1:-1] if text[0] == "`" else _unescape(text[1:-1])


def _fill(template: str, name: str, secret: str) -> str:
    named = template.replace("{i}", name).replace("{I}", name.upper())
    return named.replace("{s}", secret)


def trufflehog_samples(tests: Iterator[str]) -> Iterator[Sample]:
    """Yield the inputs of detector tests with what a detector must find in them."""
    calls: dict[str, Callable[..., Any]] = {"Sprintf": _format}
    for source in tests:
        names = _constants(source, calls)
        for start in _CASE.finditer(source):
            reader = _Reader(source, start.end(), calls)
            try:
                text = reader.value(names)
                if not (want := _WANT.match(source, reader.at)):
                    continue
                wanted = _Reader(source, want.end(), calls).value(names)
            except (_Unclear, TypeError):
                continue
            for secret in wanted[:1]:
                yield Sample(text=text, secret=_present(secret, text))


def _present(wanted: str, text: str) -> str:
    """Return the part of a wanted value that the text has: some are several values in a row."""
    for length in range(len(wanted), 7, -1):
        if wanted[:length] in text:
            return wanted[:length]
    return ""


def _constants(source: str, calls: dict[str, Callable[..., Any]]) -> dict[str, Any]:
    names: dict[str, Any] = {}
    for match in _CONSTANT.finditer(source):
        try:
            names[match["name"]] = _Reader(source, match.end(), calls).value(names)
        except _Unclear:
            continue
    return names


def _matching(pattern: str, dice: random.Random) -> str:
    """Return a random string that a simple expression matches."""
    parser: Any = re._parser
    return "".join(map(str, _letters(parser.parse(pattern), dice)))


def _letters(parsed: Any, dice: random.Random) -> Iterator[str]:
    for operator, value in parsed:
        match str(operator):
            case "LITERAL":
                yield chr(value)
            case "IN":
                yield dice.choice(_members(value))
            case "MAX_REPEAT":
                least, most, inner = value
                for _ in range(dice.randint(least, min(most, least + _MOST_REPEATS))):
                    yield from _letters(inner, dice)
            case "SUBPATTERN":
                yield from _letters(value[-1], dice)
            case "BRANCH":
                yield from _letters(dice.choice(value[1]), dice)
            case "AT":
                pass
            case _:
                raise _Unclear


def _members(allowed: Any) -> str:
    found = ""
    for operator, value in allowed:
        match str(operator):
            case "LITERAL":
                found += chr(value)
            case "RANGE":
                found += "".join(map(chr, range(value[0], value[1] + 1)))
            case "CATEGORY":
                found += "abcdefghijklmnopqrstuvwxyz0123456789"
    return found
