"""Turns the error response of an image server into an error kind and one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import JsonObject, JsonValue
from hermes.core.errors import ProviderError
from hermes.images.faults import ImageFault

_LONGEST = 300
_POLICY = (
    "content_policy", "content policy", "moderation", "safety system", "safety_violations", "nsfw",
    "flagged", "sensitive content", "sensitive_words", "prohibited_content", "image_safety",
)  # fmt: skip
_KINDS = {401: "auth_required", 403: "auth_required", 408: "timeout", 429: "rate_limited"}
_KINDS |= {504: "timeout", 400: "invalid_argument", 404: "invalid_argument"}
_KINDS |= {413: "invalid_argument", 415: "invalid_argument", 422: "invalid_argument"}
_NEXT = {
    "auth_required": "check its key with `hermes tools images`",
    "rate_limited": "wait a little, or choose another provider",
    "content_policy": "describe something else",
}
_WORDS = ("message", "msg", "detail", "error", "title", "errors", "description")


def error_from_response(
    label: str, status: int, body: str, headers: Mapping[str, str], *, hide: str = ""
) -> ImageFault:
    """For a response with an error status. `hide` is a key that a server may repeat."""
    said = _extract_message(body, headers.get("content-type", ""))
    kind = "content_policy" if is_policy(body) else _KINDS.get(status, "api_error")
    if kind == "rate_limited" and (wait := headers.get("retry-after", "")):
        said = f"{said} (retry after {wait[:20]} s)".strip()
    return ImageFault(_sentence(f"{label} answered {status}", said, kind, hide), kind=kind)


def error_from_message(label: str, said: JsonValue, *, kind: str = "provider_error") -> ImageFault:
    """For a failure that a server reports with a success status."""
    text = " ".join(_texts(said)) or "it gave no reason"
    if is_policy(text):
        kind = "content_policy"
    return ImageFault(_sentence(f"{label} could not generate it", text, kind, ""), kind=kind)


def unreachable_error(label: str, error: ProviderError) -> ImageFault:
    kind = "timeout" if error.reason == "timeout" else "api_error"
    return ImageFault(f"{label}: {error}", kind=kind)


def is_policy(text: str) -> bool:
    lower = text.lower()
    return any(word in lower for word in _POLICY)


def _sentence(what: str, said: str, kind: str, hide: str) -> str:
    if hide:
        said = said.replace(hide, "***")
    words = " ".join(said.split())[:_LONGEST].rstrip(" .")
    step = _NEXT.get(kind, "")
    return what + (f": {words}" if words else "") + (f"; {step}." if step else ".")


def _extract_message(body: str, content_type: str) -> str:
    if "html" in content_type.lower() or body.lstrip()[:1] == "<":
        return "a web page instead of JSON; is the address right?"
    try:
        return " ".join(_texts(decode(object, body)))
    except DecodeError:
        return body


def _texts(value: JsonValue) -> Iterator[str]:
    """Return the texts of an error object of any shape, without duplicates."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value[:3]:
            yield from _texts(each)
    elif isinstance(value, dict):
        yield from _find_text(value)


def _find_text(value: JsonObject) -> Iterator[str]:
    for word in _WORDS:
        if value.get(word):
            yield from _texts(value[word])
            return
