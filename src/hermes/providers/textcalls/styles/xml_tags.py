"""Styles with one element per argument: Qwen3-Coder, MiniMax, DeepSeek 3.2, `invoke`."""

from __future__ import annotations

import re
from typing import NamedTuple

from hermes.codec.values import JsonObject
from hermes.providers.textcalls.parsing import (
    CallStyle,
    NoCall,
    RawCall,
    Reading,
    Steps,
    TextTape,
    first_of,
    parse_arguments,
)

_NAMED = re.compile(r"""(?:\s*name\s*=\s*|=)\s*(["']?)([^"'<>\s=]+)\1([^<>]*)""")
_HEAD = 200


class Elements(NamedTuple):
    """Element names for a call and an argument, with a common prefix."""

    call: str
    parameter: str
    prefix: str = ""

    @property
    def opener(self) -> str:
        return f"<{self.prefix}{self.call}"

    @property
    def closer(self) -> str:
        return f"</{self.prefix}{self.call}>"

    @property
    def parameter_opener(self) -> str:
        return f"<{self.prefix}{self.parameter}"

    @property
    def parameter_closer(self) -> str:
        return f"</{self.prefix}{self.parameter}>"


FUNCTION = Elements("function", "parameter")
INVOKE = Elements("invoke", "parameter")


def read_element(tape: TextTape, kind: Elements) -> Steps[RawCall]:
    """Parses one call with its arguments."""
    yield from tape.expect(kind.opener)
    name = tape.mark_name(tape.offer.strip_namespace((yield from _name(tape))))
    arguments: JsonObject = {}
    while True:
        yield from tape.skip_spaces()
        if (yield from tape.accept(kind.closer)):
            return RawCall(name, arguments, typed=False)
        yield from tape.expect(kind.parameter_opener)
        key = yield from _name(tape)
        if key in arguments:
            raise NoCall
        text = yield from tape.value(kind.parameter_closer, kind.parameter_opener, kind.closer)
        arguments[key] = strip_value(text)


def strip_value(text: str) -> str:
    """Removes the pair of line breaks that separates a value from its tags."""
    for line_end in ("\r\n", "\n"):
        size = len(line_end)
        if len(text) >= 2 * size and text.startswith(line_end) and text.endswith(line_end):
            return text[size:-size]
    return text


def _name(tape: TextTape) -> Steps[str]:
    """The name in `=name>` or ` name="name" …>`."""
    head = yield from tape.until(">", most=_HEAD)
    found = _NAMED.fullmatch(head)
    if found is None:
        raise NoCall
    return found[2]


def _read_wrapped(tape: TextTape, opener: str, closer: str, kind: Elements) -> Reading:
    yield from tape.expect(opener)
    found: list[RawCall] = []
    while True:
        yield from tape.skip_spaces()
        if found and (yield from tape.accept(closer)):
            return tuple(found)
        if found and tape.ended and not tape.ahead:
            return tuple(found)
        found.append((yield from read_element(tape, kind)))


def _single(tape: TextTape, kind: Elements, stray: str = "") -> Reading:
    """A call without its wrapper, of which only the end may be there."""
    found = yield from read_element(tape, kind)
    if stray:
        here = tape.at
        yield from tape.skip_spaces()
        if not (yield from tape.accept(stray)):
            tape.at = here
    return (found,)


def _json_function(tape: TextTape) -> Reading:
    """`<function=name>{…}</function>`: custom functions of Llama 3.1."""
    yield from tape.expect("<function=")
    name = tape.mark_name(tape.offer.strip_namespace((yield from tape.until(">", most=_HEAD))))
    yield from tape.skip_spaces()
    arguments = parse_arguments((yield from tape.balanced_text()))
    yield from tape.skip_spaces()
    yield from tape.expect("</function>")
    return (RawCall(name, arguments),)


def _function(tape: TextTape) -> Reading:
    return first_of(tape, _json_function(tape), _single(tape, FUNCTION, "</tool_call>"))


def _wrapper(name: str, *wrappers: tuple[str, str, Elements]) -> CallStyle:
    by_opener = {opener: (closer, kind) for opener, closer, kind in wrappers}

    def read(tape: TextTape) -> Reading:
        opener = next(o for o in by_opener if tape.text.startswith(o, tape.at))
        return _read_wrapped(tape, opener, *by_opener[opener])

    closers = {closer for _, closer, _ in wrappers}
    closers |= {kind.closer for *_, kind in wrappers}
    closers |= {kind.parameter_closer for *_, kind in wrappers}
    return CallStyle(name, read, openers=tuple(by_opener), closers=tuple(sorted(closers)))


_DSML = "｜DSML｜"
_ANTML = "antml:"

STYLES = (
    _wrapper("qwen-coder", ("<tool_call>", "</tool_call>", FUNCTION)),
    CallStyle(
        "function",
        _function,
        openers=("<function=", '<function name="'),
        closers=("</function>", "</parameter>"),
    ),
    _wrapper("seed", ("<seed:tool_call>", "</seed:tool_call>", FUNCTION)),
    _wrapper("minimax", ("<minimax:tool_call>", "</minimax:tool_call>", INVOKE)),
    _wrapper(
        "deepseek-dsml",
        (
            f"<{_DSML}function_calls>",
            f"</{_DSML}function_calls>",
            Elements("invoke", "parameter", _DSML),
        ),
    ),
    _wrapper(
        "invoke",
        ("<function_calls>", "</function_calls>", INVOKE),
        ("<tool_calls>", "</tool_calls>", INVOKE),
        (
            f"<{_ANTML}function_calls>",
            f"</{_ANTML}function_calls>",
            Elements("invoke", "parameter", _ANTML),
        ),
    ),
    CallStyle(
        "bare-invoke",
        lambda tape: _single(tape, INVOKE, "</function_calls>"),
        openers=('<invoke name="',),
        closers=(INVOKE.closer, INVOKE.parameter_closer),
    ),
)
