"""Tokens that others can verify."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from hermes.core.errors import ConfigError
from hermes.credentials.oauth.signed_jwt import parse_private_key, sign_jwt
from tests.credentials.rsa_keys import PKCS1, PKCS8, pem, verified

CLAIMS = {"iat": 999_940, "exp": 1_000_540, "iss": "12345"}


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65_537, 2_048)


@pytest.mark.parametrize("form", [PKCS1, PKCS8])
def test_a_token_is_signed_so_that_others_can_verify_it(
    key: rsa.RSAPrivateKey, form: serialization.PrivateFormat
) -> None:
    token = sign_jwt(CLAIMS, parse_private_key(pem(key, form)))
    assert verified(token, key.public_key()) == ({"alg": "RS256", "typ": "JWT"}, CLAIMS)


def test_a_token_names_the_key_that_signed_it(key: rsa.RSAPrivateKey) -> None:
    token = sign_jwt(CLAIMS, parse_private_key(pem(key, PKCS8)), key_id="k1")
    assert verified(token, key.public_key())[0]["kid"] == "k1"


def test_a_key_is_not_shown(key: rsa.RSAPrivateKey) -> None:
    assert repr(parse_private_key(pem(key, PKCS8))) == "RsaKey(2048 bits)"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "words",
        "-----BEGIN PRIVATE KEY-----\nnonsense\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMIIBVQ==\n-----END PRIVATE KEY-----",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----",
    ],
)
def test_what_is_no_key_is_said_to_be_none(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_private_key(text)
