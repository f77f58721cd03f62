"""Repairs calls whose markup is clear but whose content cannot be read, or reports them."""

from __future__ import annotations

import json
import re

from hermes.codec.values import JsonObject
from hermes.providers.normalization import clean_text
from hermes.providers.textcalls.attempts import CallAttempt
from hermes.providers.textcalls.parsing import (
    ARGUMENTS,
    CallStyle,
    NoCall,
    RawCall,
    parse_calls,
)
from hermes.providers.textcalls.validation import OfferedTools, SchemaMismatch
from hermes.providers.wire.reply_builder import INCOMPLETE

UNREADABLE = "the call in the text cannot be read; write it again as a tool call"
UNKNOWN_NAME = "unknown"
_FENCE = "```"
_MAX_SHOWN_CHARS = 500
_NAME = re.compile(
    r"""["'](?:tool_)?name["']\s*:\s*["']([\w.\-]+)|<(?:function|invoke)\s*(?:=|name=)["']?([\w.\-]+)"""
)
_JSON_CALL = re.compile(
    rf"""[\[{{\s]*["'](?:tool_)?name["']\s*:\s*["']([\w.\-]+)["']\s*,"""
    rf"""\s*["'](?:{"|".join(ARGUMENTS)})["']\s*:"""
)
_JSON = json.JSONDecoder(strict=False)
_STRING_OR_SIGN = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])|[{}\[\]]', re.DOTALL)
_CLOSING = {"{": "}", "[": "]"}


def is_malformed_call(attempt: CallAttempt) -> bool:
    """Return whether an unreadable text can only be meant as a call. Markup that is used only for
    calls is enough; text that looks like JSON must name an offered tool and its arguments."""
    if attempt.position.vetoed:
        return False
    if marked_styles(attempt):
        return attempt.tape.begun or _is_only_markup(attempt) or _is_fenced(attempt)
    if any(style.marked and style.tool_openers for style in attempt.styles):
        return _has_parameter_tag(attempt)
    text = _without_fence(attempt.text)
    call = _JSON_CALL.match(text)
    if call is None or not attempt.tape.offer.knows(attempt.tape.offer.strip_namespace(call[1])):
        return False
    # Readable JSON is data: it has other keys than a call.
    return not _starts_with_json(text)


def marked_styles(attempt: CallAttempt) -> tuple[CallStyle, ...]:
    """Return the styles of the attempt whose openers ordinary text does not contain."""
    if attempt.opener == _FENCE:
        return ()
    return tuple(style for style in attempt.styles if style.marked and style.openers)


def _is_only_markup(attempt: CallAttempt) -> bool:
    """Whether the reply so far is the start or the end of a call."""
    rest = attempt.text[len(attempt.opener) :]
    is_token = not attempt.opener[0].isalpha()
    return attempt.position.first and is_token and len(rest.split()) <= 1


def _has_parameter_tag(attempt: CallAttempt) -> bool:
    """Whether an element named after a tool contains one that is named after its parameter."""
    name, offer = attempt.tape.named, attempt.tape.offer
    names = offer.parameters(name) if offer.knows(name) else ()
    return any(f"<{each}>" in attempt.text for each in names)


def _is_fenced(attempt: CallAttempt) -> bool:
    """Whether a code fence follows the opener."""
    return attempt.text[len(attempt.opener) :].lstrip().startswith(_FENCE)


def split_at_closer(attempt: CallAttempt) -> tuple[str, str]:
    """Split the text of an attempt after the last closing token of its styles. Without one, all of
    it belongs to the call."""
    text = attempt.text
    closers = [closer for style in attempt.styles for closer in style.closers]
    ends = [text.rfind(closer) + len(closer) for closer in closers if closer in text]
    end = max(ends, default=len(text))
    return text[:end], text[end:]


def repair_calls(markup: str, attempt: CallAttempt) -> tuple[RawCall, ...]:
    """Parse calls in JSON that lacks closing brackets before the closing token, has too many of
    them, or has trailing commas. Raise NoCall."""
    closers = [c for style in attempt.styles for c in style.closers if markup.endswith(c)]
    # Without a closing token the text may be incomplete; brackets are added only before one.
    closer = max(closers, key=len, default="")
    inner = markup[len(attempt.opener) : len(markup) - len(closer)].strip()
    return parse_calls(_balance(_without_fence(inner), complete=bool(closer)), strict=True)


def broken_call(markup: str, attempt: CallAttempt, *, whole: bool) -> tuple[str, str]:
    """Return the name of an unreadable call and why it cannot run, for the model."""
    name = attempt.tape.named
    if not name:
        found = _NAME.search(markup)
        name = attempt.tape.offer.strip_namespace(found[1] or found[2]) if found else UNKNOWN_NAME
    shown = clean_text(markup.strip())
    if len(shown) > _MAX_SHOWN_CHARS:
        shown = shown[:_MAX_SHOWN_CHARS] + "…"
    return name, f"{UNREADABLE if whole else INCOMPLETE}: {shown}"


def fit_call(offer: OfferedTools, raw: RawCall) -> tuple[str, JsonObject, str]:
    """Return the name and the arguments of a call in the types of the schema, and why it cannot
    run. Wrong types and unknown tools are repaired or reported when the call is planned. Unknown
    arguments, and wrong ones in a style whose values are all text, may mean that the call was
    split wrongly, so it is unusable."""
    name = offer.strip_namespace(raw.name)
    try:
        return name, offer.arguments(name, raw.arguments, typed=raw.typed), ""
    except SchemaMismatch as error:
        is_known = offer.knows(name)
        if not is_known or (raw.typed and raw.arguments.keys() <= set(offer.parameters(name))):
            return name, raw.arguments, ""
        return name, {}, f"the arguments do not match the tool: {error}"


def _balance(text: str, *, complete: bool) -> str:
    """Drop trailing commas and surplus brackets; with `complete`, add missing brackets."""
    parts: list[str] = []
    open_brackets: list[str] = []
    at = 0
    for found in _STRING_OR_SIGN.finditer(text):
        sign = found[0]
        parts.append(text[at : found.start()])
        at = found.end()
        if sign in _CLOSING:
            open_brackets.append(_CLOSING[sign])
        elif sign in ("}", "]"):
            if not open_brackets:
                continue
            if sign != open_brackets.pop():
                raise NoCall
        elif sign == ",":
            continue
        parts.append(sign)
    if open_brackets and not complete:
        raise NoCall
    return "".join((*parts, text[at:], *reversed(open_brackets)))


def _without_fence(text: str) -> str:
    inner = text.strip()
    if not inner.startswith(_FENCE):
        return inner
    return inner[len(_FENCE) :].lstrip("abcdefghijklmnopqrstuvwxyz_").removesuffix(_FENCE).strip()


def _starts_with_json(text: str) -> bool:
    try:
        _JSON.raw_decode(text)
    except (ValueError, RecursionError):
        return False
    return True
