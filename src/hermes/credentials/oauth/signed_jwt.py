"""JSON Web Tokens signed with an RSA key (RS256)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, Value
from hermes.core.errors import ConfigError

_SEQUENCE, _INTEGER, _OCTETS = 0x30, 0x02, 0x04
# ASN.1 prefix of a SHA-256 digest.
_DIGEST_INFO = bytes.fromhex("3031300d060960864801650304020105000420")
_LEAST_BITS = 1_024


class RsaKey(Value):
    """The numbers of an RSA key needed to sign."""

    modulus: int
    exponent: int

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.modulus.bit_length()} bits)"


def sign_jwt(claims: JsonObject, key: RsaKey, *, key_id: str = "") -> str:
    """Return a signed token with these claims; `key_id` tells the server which key signed it."""
    header = {"alg": "RS256", "typ": "JWT"} | ({"kid": key_id} if key_id else {})
    message = ".".join(_base64url(encode(part)) for part in (header, claims))
    # PKCS #1 v1.5
    size = (key.modulus.bit_length() + 7) // 8
    digest = _DIGEST_INFO + hashlib.sha256(message.encode()).digest()
    padded = b"\x00\x01" + b"\xff" * (size - len(digest) - 3) + b"\x00" + digest
    signature = pow(int.from_bytes(padded), key.exponent, key.modulus).to_bytes(size)
    return f"{message}.{_base64url(signature)}"


def parse_private_key(pem: str) -> RsaKey:
    """Parse a PKCS #1 or PKCS #8 PEM key. Raises ConfigError."""
    lines = pem.strip().splitlines()
    kind = lines[0].strip("- ") if lines else ""
    if kind not in ("BEGIN RSA PRIVATE KEY", "BEGIN PRIVATE KEY"):
        raise ConfigError("This is not an unencrypted RSA private key in PEM format.")
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


def _inside(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Return the elements of a DER sequence with their tags."""
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


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
