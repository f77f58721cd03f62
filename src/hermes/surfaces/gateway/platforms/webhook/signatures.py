"""Checks that a request comes from somebody who knows the secret of a route."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Mapping

from hermes.core.errors import ConfigError

MAX_AGE_SECONDS = 300.0
NO_AUTH = "INSECURE_NO_AUTH"
_STANDARD = ("webhook", "svix")


def check_secrets(route: str, secrets: Iterable[str], *, is_loopback: bool) -> None:
    """ConfigError for a route that anybody could call."""
    found = tuple(secrets)
    if not any(found):
        raise ConfigError(f"The webhook {route!r} has no secret; set it or WEBHOOK_SECRET.")
    if NO_AUTH in found and not is_loopback:
        raise ConfigError(
            f"The webhook {route!r} has no authentication; listen on 127.0.0.1 or set a secret."
        )


def is_authentic(
    headers: Mapping[str, str], body: bytes, secrets: Iterable[str], now: float
) -> bool:
    """Whether one of the secrets fits the signature or token of a request."""
    found = tuple(filter(None, secrets))
    return NO_AUTH in found or any(_matches(headers, body, secret, now) for secret in found)


def _matches(headers: Mapping[str, str], body: bytes, secret: str, now: float) -> bool:
    """Tries the schemes whose headers are there; all of them need the secret."""
    for prefix in _STANDARD:
        if f"{prefix}-signature" in headers:
            return _is_standard(headers, prefix, body, secret, now)
    if signature := headers.get("x-webhook-signature-v2"):
        stamp = headers.get("x-webhook-timestamp", "")
        signed = stamp.encode() + b"." + body
        return _is_fresh(stamp, now) and _equal(signature, _hex(secret, signed))
    if signature := headers.get("x-hub-signature-256"):
        return _equal(signature, f"sha256={_hex(secret, body)}")
    if signature := headers.get("x-webhook-signature"):
        return _equal(signature.removeprefix("sha256="), _hex(secret, body))
    if token := headers.get("x-gitlab-token"):
        return _equal(token, secret)
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and _equal(token.strip(), secret)


def _is_standard(
    headers: Mapping[str, str], prefix: str, body: bytes, secret: str, now: float
) -> bool:
    """Standard Webhooks, also as Svix names the headers."""
    stamp, message_id = headers.get(f"{prefix}-timestamp", ""), headers.get(f"{prefix}-id", "")
    if not _is_fresh(stamp, now) or not message_id:
        return False
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = secret.encode()
    keys = (key,) if secret.startswith("whsec_") else (key, secret.encode())
    signed = f"{message_id}.{stamp}.".encode() + body
    given = [
        each.partition(",")[2]
        for each in headers[f"{prefix}-signature"].split()
        if each.startswith("v1,")
    ]
    return any(
        _equal(each, base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode())
        for each in given
        for key in keys
    )


def _is_fresh(stamp: str, now: float) -> bool:
    return stamp.isdecimal() and abs(now - int(stamp)) <= MAX_AGE_SECONDS


def _hex(secret: str, data: bytes) -> str:
    return hmac.new(secret.encode(), data, hashlib.sha256).hexdigest()


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.strip().encode(), expected.encode())


def delivery_id(headers: Mapping[str, str]) -> str:
    """The id under which the sender repeats a delivery; "" when it has none."""
    for name in (
        "x-github-delivery",
        "x-gitlab-event-uuid",
        "webhook-id",
        "svix-id",
        "x-delivery-id",
        "idempotency-key",
        "x-request-id",
    ):
        if value := headers.get(name, "").strip():
            return value[:200]
    # A repeated request with the same time stamp has the same signature.
    signature = headers.get("x-webhook-signature-v2", "")
    return hashlib.sha256(signature.encode()).hexdigest()[:32] if signature else ""
