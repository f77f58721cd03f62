"""RSA keys as files, and tokens as their receivers verify them."""

from __future__ import annotations

import base64
import json

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from hermes.codec.values import JsonObject

PKCS1 = serialization.PrivateFormat.TraditionalOpenSSL
PKCS8 = serialization.PrivateFormat.PKCS8


def pem(key: rsa.RSAPrivateKey, form: serialization.PrivateFormat) -> str:
    none = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, none).decode()


def verified(token: str, key: rsa.RSAPublicKey) -> tuple[JsonObject, JsonObject]:
    """Return header and claims; raise InvalidSignature."""
    head, body, signature = token.split(".")
    key.verify(_decode(signature), f"{head}.{body}".encode(), padding.PKCS1v15(), SHA256())
    return json.loads(_decode(head)), json.loads(_decode(body))


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
