"""Styles between tags: JSON (Hermes, Qwen 2.5, Llama 3, Granite, Command), or one element per
argument (Qwen3-Coder, MiniMax, DeepSeek 3.2, `invoke`)."""

from __future__ import annotations

import re

from hermes.codec.values import JsonObject
from hermes.providers.textcalls.parsing import (
    CallStyle,
    NoCall,
    OneCall,
    RawCall,
    Reading,
    Steps,
    TextTape,
    first_of,
    parse_calls,
    read_section,
)


def _json_block(
    tape: TextTape, opener: str, closers: tuple[str, ...], *, closed: bool = True
) -> Reading:
    """Read one or more objects or lists, and a closer. A reply may end after complete JSON, because
    some servers hide the closing token. Styles without a closer are not `closed`."""
    yield from tape.expect(opener)
    yield from tape.any_of("<|plugin|>")
    calls: list[RawCall] = []
    end = tape.at
    while True:
        yield from tape.skip_spaces()
        if tape.ahead not in ("{", "["):
            break
        calls += parse_calls((yield from tape.balanced_text()))
        tape.mark_name(calls[0].name)
        end = tape.at
        yield from tape.skip_spaces()
        yield from tape.any_of(",", ";")
    closer = (yield from tape.any_of(*closers)) if calls else ""
    if not calls or (closed and not closer and not tape.finished):
        raise NoCall
    tape.at = tape.at if closer else end
    return tuple(calls)


def _json_style(name: str, *marks: tuple[str, ...], closed: bool = True) -> CallStyle:
    """Build a style of JSON calls. Each of `marks` is an opener followed by its closers."""
    by_opener = {opener: tuple(closers) for opener, *closers in marks}

    def read(tape: TextTape) -> Reading:
        opener = next(o for o in by_opener if tape.text.startswith(o, tape.at))
        return _json_block(tape, opener, by_opener[opener], closed=closed)

    closers = tuple(closer for mark in marks for closer in mark[1:])
    return CallStyle(name, read, openers=tuple(by_opener), closers=closers)


def _functools(tape: TextTape) -> Reading:
    """Read `functools[…]`, which has no closer: the list is everything."""
    yield from tape.expect("functools")
    found = parse_calls((yield from tape.balanced_text()))
    tape.mark_name(found[0].name)
    return found


_NAMED = re.compile(r"""(?:\s*name\s*=\s*|=)\s*(["']?)([^"'<>\s=]+)\1([^<>]*)""")
_HEAD = 200


class Elements:
    """The tags of a call and of an argument, with a common prefix."""

    def __init__(self, call: str, prefix: str = "") -> None:
        self.opener = f"<{prefix}{call}"
        self.closer = f"</{prefix}{call}>"
        self.parameter_opener = f"<{prefix}parameter"
        self.parameter_closer = f"</{prefix}parameter>"


FUNCTION = Elements("function")
INVOKE = Elements("invoke")


def _read_element(tape: TextTape, kind: Elements) -> OneCall:
    """Parse one call with its arguments."""
    yield from tape.expect(kind.opener)
    name = tape.mark_name((yield from _name(tape)))
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
    """Remove the pair of line breaks that separates a value from its tags."""
    for line_end in ("\r\n", "\n"):
        size = len(line_end)
        if len(text) >= 2 * size and text.startswith(line_end) and text.endswith(line_end):
            return text[size:-size]
    return text


def _name(tape: TextTape) -> Steps[str]:
    """Read the name in `=name>` or ` name="name" …>`."""
    found = _NAMED.fullmatch((yield from tape.until(">", most=_HEAD)))
    if found is None:
        raise NoCall
    return found[2]


def _single(tape: TextTape, kind: Elements, stray: str) -> Reading:
    """Read a call without its wrapper, of which only the end, `stray`, may be there."""
    found = yield from _read_element(tape, kind)
    here = tape.at
    yield from tape.skip_spaces()
    if not (yield from tape.accept(stray)):
        tape.at = here
    return (found,)


def _json_function(tape: TextTape) -> Reading:
    """Read `<function=name>{…}</function>`: custom functions of Llama 3.1."""
    yield from tape.expect("<function=")
    name = tape.mark_name((yield from tape.until(">", most=_HEAD)))
    arguments = yield from tape.arguments()
    yield from tape.expect("</function>", skip=True)
    return (RawCall(name, arguments),)


def _function(tape: TextTape) -> Reading:
    return first_of(tape, _json_function(tape), _single(tape, FUNCTION, "</tool_call>"))


def _wrapped_style(name: str, *wrappers: tuple[str, Elements]) -> CallStyle:
    """Build a style of nested elements. Each of `wrappers` is the name of the outer element and the
    elements in it."""
    kinds = {f"<{wrapper}>": (f"</{wrapper}>", kind) for wrapper, kind in wrappers}

    def read(tape: TextTape) -> Reading:
        opener = next(o for o in kinds if tape.text.startswith(o, tape.at))
        closer, kind = kinds[opener]
        return read_section(tape, opener, closer, lambda: _read_element(tape, kind))

    closers = {closer for closer, _ in kinds.values()}
    for _, kind in wrappers:
        closers |= {kind.closer, kind.parameter_closer}
    return CallStyle(name, read, openers=tuple(kinds), closers=tuple(sorted(closers)))


_DSML = "｜DSML｜"
_ANTML = "antml:"

STYLES = (
    _json_style("hermes", ("<tool_call>", "</tool_call>")),
    _json_style(
        "json-tag",
        ("<function_call>", "</function_call>"),
        ("<functioncall>", "</functioncall>"),
        ("<tool_use>", "</tool_use>"),
        ("<tool_code>", "</tool_code>"),
        ("<tools>", "</tools>"),
        ("<tool>", "</tool>"),
    ),
    CallStyle(
        "llama",
        # After this token Llama 3 writes to the end of its turn.
        lambda tape: _json_block(tape, "<|python_tag|>", ("<|eom_id|>", "<|eot_id|>")),
        openers=("<|python_tag|>",),
        closers=("<|eom_id|>",),
    ),
    _json_style("granite", ("<|tool_call|>", "<|/tool_call|>", "<|end_of_text|>"), closed=False),
    CallStyle("phi", _functools, openers=("functools[",), line=True),
    _json_style("jamba", ("<tool_calls>", "</tool_calls>")),
    _json_style("nemotron", ("<TOOLCALL>", "</TOOLCALL>")),
    _json_style("internlm", ("<|action_start|>", "<|action_end|>")),
    _json_style("command", ("<|START_ACTION|>", "<|END_ACTION|>")),
    _wrapped_style("qwen-coder", ("tool_call", FUNCTION)),
    CallStyle(
        "function",
        _function,
        openers=("<function=", '<function name="'),
        closers=("</function>", "</parameter>"),
    ),
    _wrapped_style("seed", ("seed:tool_call", FUNCTION)),
    _wrapped_style("minimax", ("minimax:tool_call", INVOKE)),
    _wrapped_style("deepseek-dsml", (f"{_DSML}function_calls", Elements("invoke", _DSML))),
    _wrapped_style(
        "invoke",
        ("function_calls", INVOKE),
        ("tool_calls", INVOKE),
        (f"{_ANTML}function_calls", Elements("invoke", _ANTML)),
    ),
    CallStyle(
        "bare-invoke",
        lambda tape: _single(tape, INVOKE, "</function_calls>"),
        openers=('<invoke name="',),
        closers=(INVOKE.closer, INVOKE.parameter_closer),
    ),
)
