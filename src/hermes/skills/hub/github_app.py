"""A token of a GitHub App: it shows who it is with its private key, and gets an hour's pass."""

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
from hermes.skills.hub.web import Web, decoded

VARIABLES = ("GITHUB_APP_ID", "GITHUB_APP_INSTALLATION_ID", "GITHUB_APP_PRIVATE_KEY_PATH")
# Clocks differ; a claim may say ten minutes at most.
_BEFORE, _AFTER = 60, 540
# A pass is good for an hour; it is not used to the last minute.
_GOOD_SECONDS = 3_000.0
_SEQUENCE, _INTEGER, _OCTETS = 0x30, 0x02, 0x04
# Says that a SHA-256 follows.
_DIGEST_INFO = bytes.fromhex("3031300d060960864801650304020105000420")
_LEAST_BITS = 1_024


class _Pass(Value):
    token: str


class GitHubApp:
    """`variables` give the App's id, that of its installation, and the file of its key."""

    def __init__(self, variables: Mapping[str, str], clock: Clock) -> None:
        self._id, self._installation, self._file = (variables.get(name, "") for name in VARIABLES)
        self._clock = clock
        self._held = ("", 0.0)

    @property
    def is_set(self) -> bool:
        return bool(self._id and self._installation and self._file)

    async def token(self, web: Web) -> str:
        """ConfigError for a key that cannot be used; HermesError when GitHub refuses it."""
        token, until = self._held
        if self._clock.now() < until:
            return token
        claim = signed_claim(self._id, _key(self._file), int(self._clock.now()))
        api, place = web.url("github_api"), quote(self._installation, safe="")
        url = f"{api}/app/installations/{place}/access_tokens"
        headers = {"accept": "application/vnd.github+json", "authorization": f"Bearer {claim}"}
        answer = await web.post(url, headers, {})
        token = decoded(_Pass, url, answer.body).token
        self._held = token, self._clock.now() + _GOOD_SECONDS
        return token


class Key(Value):
    """The numbers of an RSA key that are needed to sign."""

    modulus: int
    exponent: int


def signed_claim(app: str, key: Key, now: int) -> str:
    """A JSON Web Token by RS256."""
    body = {"iat": now - _BEFORE, "exp": now + _AFTER, "iss": app}
    said = f"{_part({'alg': 'RS256', 'typ': 'JWT'})}.{_part(body)}"
    return f"{said}.{_plain(_signature(said.encode(), key))}"


def read_key(pem: str) -> Key:
    """Of a PEM file in either of the two forms; ConfigError."""
    lines = pem.strip().splitlines()
    kind = lines[0].strip("- ") if lines else ""
    if kind not in ("BEGIN RSA PRIVATE KEY", "BEGIN PRIVATE KEY"):
        raise ConfigError("It is no private RSA key in PEM form without a passphrase.")
    try:
        data = base64.b64decode("".join(lines[1:-1]), validate=True)
        if kind == "BEGIN PRIVATE KEY":
            data = next(value for tag, value in _inside(data) if tag == _OCTETS)
        numbers = [int.from_bytes(value) for tag, value in _inside(data) if tag == _INTEGER]
        key = Key(modulus=numbers[1], exponent=numbers[3])
    except (ValueError, IndexError, StopIteration) as error:
        raise ConfigError("The private key cannot be read; download it again.") from error
    if key.modulus.bit_length() < _LEAST_BITS:
        raise ConfigError("The private key is too short; make another one.")
    return key


def _key(file: str) -> Key:
    path = Path(file).expanduser()
    try:
        return read_key(path.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"GITHUB_APP_PRIVATE_KEY_PATH: {path} cannot be read.") from error
    except ConfigError as error:
        raise ConfigError(f"GITHUB_APP_PRIVATE_KEY_PATH: {path}: {error}") from error


def _inside(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The parts of a sequence in DER, each with its tag."""
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


def _signature(said: bytes, key: Key) -> bytes:
    """PKCS #1 v1.5: the digest behind padding of the length of the key, raised to its exponent."""
    size = (key.modulus.bit_length() + 7) // 8
    digest = _DIGEST_INFO + hashlib.sha256(said).digest()
    padded = b"\x00\x01" + b"\xff" * (size - len(digest) - 3) + b"\x00" + digest
    return pow(int.from_bytes(padded), key.exponent, key.modulus).to_bytes(size)


def _part(value: JsonObject) -> str:
    return _plain(encode(value))


def _plain(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
