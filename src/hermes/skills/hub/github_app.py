"""Gets installation tokens for a GitHub App, signed with its private key."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, Value
from hermes.core.errors import ConfigError
from hermes.core.world import Clock
from hermes.skills.hub.web import HubClient, decode_body

VARIABLES = ("GITHUB_APP_ID", "GITHUB_APP_INSTALLATION_ID", "GITHUB_APP_PRIVATE_KEY_PATH")
# Clock skew before, lifetime after; GitHub allows ten minutes.
_BEFORE, _AFTER = 60, 540
# Tokens are valid for an hour; renewed early.
_GOOD_SECONDS = 3_000.0
_SEQUENCE, _INTEGER, _OCTETS = 0x30, 0x02, 0x04
# ASN.1 prefix of a SHA-256 digest.
_DIGEST_INFO = bytes.fromhex("3031300d060960864801650304020105000420")
_LEAST_BITS = 1_024


class _TokenReply(Value):
    token: str


class GitHubApp:
    """`variables` hold the App id, the installation id and the key file."""

    def __init__(self, variables: Mapping[str, str], clock: Clock) -> None:
        self._id, self._installation, self._file = (variables.get(name, "") for name in VARIABLES)
        self._clock = clock
        self._cached = ("", 0.0)

    @property
    def is_set(self) -> bool:
        return bool(self._id and self._installation and self._file)

    async def token(self, web: HubClient) -> str:
        """Raises ConfigError for an unusable key, HermesError when GitHub refuses it."""
        token, until = self._cached
        if self._clock.now() < until:
            return token
        claim = signed_claim(self._id, _key(self._file), int(self._clock.now()))
        api, place = web.url("github_api"), quote(self._installation, safe="")
        url = f"{api}/app/installations/{place}/access_tokens"
        headers = {"accept": "application/vnd.github+json", "authorization": f"Bearer {claim}"}
        answer = await web.post(url, headers, {})
        token = decode_body(_TokenReply, url, answer.body).token
        self._cached = token, self._clock.now() + _GOOD_SECONDS
        return token


class RsaKey(Value):
    """The numbers of an RSA key needed to sign."""

    modulus: int
    exponent: int


def signed_claim(app: str, key: RsaKey, now: int) -> str:
    """Returns a JSON Web Token signed with RS256."""
    body = {"iat": now - _BEFORE, "exp": now + _AFTER, "iss": app}
    message = f"{_part({'alg': 'RS256', 'typ': 'JWT'})}.{_part(body)}"
    return f"{message}.{_base64url(_signature(message.encode(), key))}"


def read_key(pem: str) -> RsaKey:
    """Reads a PKCS #1 or PKCS #8 PEM key; ConfigError."""
    lines = pem.strip().splitlines()
    kind = lines[0].strip("- ") if lines else ""
    if kind not in ("BEGIN RSA PRIVATE KEY", "BEGIN PRIVATE KEY"):
        raise ConfigError("Not an unencrypted RSA private key in PEM format.")
    try:
        data = base64.b64decode("".join(lines[1:-1]), validate=True)
        if kind == "BEGIN PRIVATE KEY":
            data = next(value for tag, value in _inside(data) if tag == _OCTETS)
        numbers = [int.from_bytes(value) for tag, value in _inside(data) if tag == _INTEGER]
        key = RsaKey(modulus=numbers[1], exponent=numbers[3])
    except (ValueError, IndexError, StopIteration) as error:
        raise ConfigError("The private key cannot be read; download it again.") from error
    if key.modulus.bit_length() < _LEAST_BITS:
        raise ConfigError("The private key is too short; create a new one.")
    return key


def _key(file: str) -> RsaKey:
    path = Path(file).expanduser()
    try:
        return read_key(path.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"GITHUB_APP_PRIVATE_KEY_PATH: {path} cannot be read.") from error
    except ConfigError as error:
        raise ConfigError(f"GITHUB_APP_PRIVATE_KEY_PATH: {path}: {error}") from error


def _inside(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Returns the elements of a DER sequence with their tags."""
    [(tag, body)] = _parts(data)
    if tag != _SEQUENCE:
        raise ValueError("no sequence")
    return _parts(body)


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    while data:
        tag, length, start = data[0], data[1], 2
        if length & 0x80:
            start += length & 0x7F
            length = int.from_bytes(data[2:start])
        if start + length > len(data):
            raise ValueError("cut off")
        yield tag, data[start : start + length]
        data = data[start + length :]


def _signature(message: bytes, key: RsaKey) -> bytes:
    """Signs with PKCS #1 v1.5."""
    size = (key.modulus.bit_length() + 7) // 8
    digest = _DIGEST_INFO + hashlib.sha256(message).digest()
    padded = b"\x00\x01" + b"\xff" * (size - len(digest) - 3) + b"\x00" + digest
    return pow(int.from_bytes(padded), key.exponent, key.modulus).to_bytes(size)


def _part(value: JsonObject) -> str:
    return _base64url(encode(value))


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
