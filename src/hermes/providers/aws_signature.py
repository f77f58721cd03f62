"""Signs requests with AWS credentials (Signature Version 4)."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, urlsplit

from hermes.codec.values import Value
from hermes.providers.endpoint import AWS_PREFIX

_ALGORITHM = "AWS4-HMAC-SHA256"
SERVICE = "bedrock"
DEFAULT_REGION = "us-east-1"


class AwsCredentials(Value):
    access_key: str
    secret_key: str
    token: str = ""

    def __repr__(self) -> str:
        return f"AwsCredentials({self.access_key!r})"


def parse_credentials(key: str) -> AwsCredentials | None:
    """Return the credentials in a key of `read_key`; None for any other key."""
    if not key.startswith(AWS_PREFIX):
        return None
    access_key, secret_key, token = key.removeprefix(AWS_PREFIX).split(":", 2)
    return AwsCredentials(access_key=access_key, secret_key=secret_key, token=token)


def region_of(host: str) -> str:
    """Return the region in a host name such as bedrock-runtime.eu-west-1.amazonaws.com."""
    parts = host.split(".")
    return parts[-3] if host.endswith(".amazonaws.com") and len(parts) > 3 else DEFAULT_REGION


def sign(
    credentials: AwsCredentials,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    at: float,
    region: str = "",
    service: str = SERVICE,
) -> dict[str, str]:
    """Return the headers that authenticate a request at the time `at`. They sign the host, the
    time, the token and the given headers, which must be sent unchanged."""
    parts = urlsplit(url)
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at))
    own = {"x-amz-date": moment}
    if credentials.token:
        own["x-amz-security-token"] = credentials.token
    signed = {"host": parts.netloc, **{k.lower(): " ".join(v.split()) for k, v in headers.items()}}
    signed |= own
    names = ";".join(sorted(signed))
    canonical = "\n".join(
        (
            method,
            quote(parts.path or "/", safe="/-_.~"),
            _canonical_query(parts.query),
            *(f"{name}:{signed[name]}" for name in sorted(signed)),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        )
    )
    scope = f"{moment[:8]}/{region or region_of(parts.hostname or '')}/{service}/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = "\n".join((_ALGORITHM, moment, scope, digest))
    signature = _digest(_signing_key(credentials.secret_key, scope), text).hex()
    credential = f"Credential={credentials.access_key}/{scope}"
    own["authorization"] = (
        f"{_ALGORITHM} {credential}, SignedHeaders={names}, Signature={signature}"
    )
    return own


def _canonical_query(query: str) -> str:
    pairs = [
        (quote(name, safe="-_.~"), quote(value, safe="-_.~"))
        for name, value in parse_qsl(query, keep_blank_values=True)
    ]
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def _signing_key(secret: str, scope: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = _digest(key, part)
    return key


def _digest(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
