"""Gemma's style: `call:name{…}` with strings between markers instead of quotes."""

from __future__ import annotations

import re

from hermes.codec.values import JsonObject, JsonValue
from hermes.providers.textcalls.parsing import CallStyle, NoCall, RawCall, Reading, Steps, TextTape
from hermes.providers.textcalls.validation import UnreadableValue, parse_value

_MAX_DEPTH = 20
_KEY = 100
_WORD = re.compile(r"[\w.\-]+")
_SCALAR = re.compile(r"[^,\]}\s<]+")


def _call(tape: TextTape, opener: str, closer: str, quote: str) -> Reading:
    yield from tape.expect(opener)
    yield from tape.skip_spaces()
    yield from tape.expect("call:")
    name = tape.mark_name(tape.offer.strip_namespace((yield from tape.word())))
    arguments = yield from _object(tape, quote, 0)
    yield from tape.skip_spaces()
    if not (yield from tape.accept(closer)) and not (tape.ended and not tape.ahead):
        raise NoCall
    return (RawCall(name, arguments),)


def _object(tape: TextTape, quote: str, depth: int) -> Steps[JsonObject]:
    yield from tape.expect("{")
    result: JsonObject = {}
    yield from tape.skip_spaces()
    while not (yield from tape.accept("}")):
        if result:
            yield from tape.expect(",")
            yield from tape.skip_spaces()
        quoted = yield from tape.accept(quote)
        key = yield from tape.until(quote if quoted else ":", most=_KEY)
        if quoted:
            yield from tape.expect(":")
        elif not _WORD.fullmatch(key):
            raise NoCall
        if key in result:
            raise NoCall
        result[key] = yield from _value(tape, quote, depth)
        yield from tape.skip_spaces()
    return result


def _list(tape: TextTape, quote: str, depth: int) -> Steps[list[JsonValue]]:
    yield from tape.expect("[")
    result: list[JsonValue] = []
    yield from tape.skip_spaces()
    while not (yield from tape.accept("]")):
        if result:
            yield from tape.expect(",")
        result.append((yield from _value(tape, quote, depth)))
        yield from tape.skip_spaces()
    return result


def _value(tape: TextTape, quote: str, depth: int) -> Steps[JsonValue]:
    if depth > _MAX_DEPTH:
        raise NoCall
    yield from tape.skip_spaces()
    if (yield from tape.accept(quote)):
        return (yield from tape.until(quote))
    if tape.ahead == "{":
        return (yield from _object(tape, quote, depth + 1))
    if tape.ahead == "[":
        return (yield from _list(tape, quote, depth + 1))
    return (yield from _scalar(tape))


def _scalar(tape: TextTape) -> Steps[JsonValue]:
    while True:
        found = _SCALAR.match(tape.text, tape.at)
        if found is None:
            raise NoCall
        if found.end() < len(tape.text) or tape.ended:
            tape.at = found.end()
            try:
                return parse_value(found[0])
            except UnreadableValue as error:
                raise NoCall from error
        yield ""


def _style(name: str, opener: str, closer: str, quote: str) -> CallStyle:
    return CallStyle(
        name,
        lambda tape: _call(tape, opener, closer, quote),
        openers=(opener,),
        closers=(closer,),
    )


STYLES = (
    _style("functiongemma", "<start_function_call>", "<end_function_call>", "<escape>"),
    _style("gemma4", "<|tool_call>", "<tool_call|>", '<|"|>'),
)
