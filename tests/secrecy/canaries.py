"""Forty secrets that must never be seen again: twenty that are configured, twenty that only look
like what they are."""

from __future__ import annotations

import base64
import random
import string
from typing import NamedTuple
from urllib.parse import quote

from tests.policy.secret_samples import lines, sample

FORMATS = (
    "openai", "anthropic_oauth", "openrouter", "github_classic", "github_fine", "gitlab",
    "slack_bot", "google_api", "aws_secret_env", "azure_storage", "digitalocean", "npm", "pypi",
    "stripe", "sendgrid", "hf", "jwt", "pem_pkcs8", "postgres", "bearer",
)  # fmt: skip
SIGNS = ("", "-", "_", ".", "/", "+", "=", "!", "#", "@")


class Canary(NamedTuple):
    """`text` are words in which it stands; `traces` are what must not be found anywhere."""

    name: str
    value: str
    text: str
    traces: tuple[str, ...]


def _value(number: int) -> str:
    chance = random.Random(f"canary {number}")
    letters = string.ascii_letters + string.digits
    parts = ["".join(chance.choices(letters, k=9)) for _ in range(3)]
    return SIGNS[number % len(SIGNS)].join(parts) + str(number % 10) + "k"


def _configured(number: int) -> Canary:
    value = _value(number)
    raw = value.encode()
    coded = (
        value,
        base64.b64encode(raw).decode().rstrip("="),
        raw.hex(),
        quote(value, safe=""),
        value[::-1],
    )
    return Canary(f"CANARY_{number:02}_TOKEN", value, "\n".join(coded), tuple(set(coded)))


def _recognised(kind: str) -> Canary:
    known = dict(line.split("\t", 1) for line in (*lines("kinds_held"), *lines("kinds")))
    text, secrets = sample(known[kind], 1)
    parts = [part for part in secrets[0].split("\n") if len(part) > 20 and "-----" not in part]
    return Canary(kind, secrets[0], text, tuple(parts or secrets))


CONFIGURED = tuple(map(_configured, range(20)))
RECOGNISED = tuple(map(_recognised, FORMATS))
CANARIES = (*CONFIGURED, *RECOGNISED)


def told(canaries: tuple[Canary, ...] = CANARIES) -> str:
    """A text with all of them in it."""
    return "Notes of the day.\n\n" + "\n\n".join(canary.text for canary in canaries) + "\n"


def found(data: bytes, canaries: tuple[Canary, ...] = CANARIES) -> list[str]:
    """The names of those that are in it, also as JSON writes them."""
    text = data.decode("utf-8", "replace")
    plain = text.replace('\\"', '"').replace("\\/", "/")
    return [
        canary.name
        for canary in canaries
        if any(trace in text or trace in plain for trace in canary.traces)
    ]
