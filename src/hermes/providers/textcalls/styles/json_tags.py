"""Styles with JSON between two markers: Hermes and Qwen 2.5, Llama 3, Granite, Command and
others."""

from __future__ import annotations

from hermes.providers.textcalls.parsing import (
    CallStyle,
    NoCall,
    RawCall,
    Reading,
    TextTape,
    parse_calls,
)

_BETWEEN = (",", ";")


def json_block(
    tape: TextTape, opener: str, closers: tuple[str, ...], *, closed: bool = True
) -> Reading:
    """One or more objects or lists, and a closer. A reply may end after complete JSON, because some
    servers hide the closing token. Styles without a closer are not `closed`."""
    yield from tape.expect(opener)
    yield from tape.any_of("<|plugin|>")
    found: list[RawCall] = []
    end = tape.at
    while True:
        yield from tape.skip_spaces()
        if tape.ahead not in ("{", "["):
            break
        more = parse_calls((yield from tape.balanced_text()))
        found += more
        tape.mark_name(tape.offer.strip_namespace(more[0].name))
        end = tape.at
        yield from tape.skip_spaces()
        yield from tape.any_of(*_BETWEEN)
    if not found:
        raise NoCall
    closer = yield from tape.any_of(*closers)
    if closed and not closer and not (tape.ended and not tape.ahead):
        raise NoCall
    tape.at = tape.at if closer else end
    return tuple(found)


def _style(name: str, *marks: tuple[str, ...], closed: bool = True) -> CallStyle:
    """Each of `marks` is an opener followed by its closers."""
    by_opener = {opener: tuple(closers) for opener, *closers in marks}

    def read(tape: TextTape) -> Reading:
        opener = next(o for o in by_opener if tape.text.startswith(o, tape.at))
        return json_block(tape, opener, by_opener[opener], closed=closed)

    closers = tuple(closer for mark in marks for closer in mark[1:])
    return CallStyle(name, read, openers=tuple(by_opener), closers=closers)


def _list(tape: TextTape) -> Reading:
    """`functools[…]` has no closer: the list is everything."""
    yield from tape.expect("functools")
    found = parse_calls((yield from tape.balanced_text()))
    tape.mark_name(tape.offer.strip_namespace(found[0].name))
    return found


def _python_tag(tape: TextTape) -> Reading:
    """After this token Llama 3 writes to the end of its turn."""
    return json_block(tape, "<|python_tag|>", ("<|eom_id|>", "<|eot_id|>"))


STYLES = (
    _style("hermes", ("<tool_call>", "</tool_call>")),
    _style(
        "json-tag",
        ("<function_call>", "</function_call>"),
        ("<functioncall>", "</functioncall>"),
        ("<tool_use>", "</tool_use>"),
        ("<tool_code>", "</tool_code>"),
        ("<tools>", "</tools>"),
        ("<tool>", "</tool>"),
    ),
    CallStyle("llama", _python_tag, openers=("<|python_tag|>",), closers=("<|eom_id|>",)),
    _style("granite", ("<|tool_call|>", "<|/tool_call|>", "<|end_of_text|>"), closed=False),
    CallStyle("phi", _list, openers=("functools[",), line=True),
    _style("jamba", ("<tool_calls>", "</tool_calls>")),
    _style("nemotron", ("<TOOLCALL>", "</TOOLCALL>")),
    _style("internlm", ("<|action_start|>", "<|action_end|>")),
    _style("command", ("<|START_ACTION|>", "<|END_ACTION|>")),
)
