"""A GitHub App shows who it is as GitHub wants it, and its key goes nowhere."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from hermes.app.start import start
from hermes.config.edit import write_settings
from hermes.config.home import Home
from hermes.core.errors import ConfigError
from hermes.skills.hub.sources.github import read_key, signed_claim
from tests.skills.bench import skill_text
from tests.skills.hub.conftest import Store

FORMS = (serialization.PrivateFormat.TraditionalOpenSSL, serialization.PrivateFormat.PKCS8)


def pem(key: rsa.RSAPrivateKey, form: serialization.PrivateFormat) -> str:
    none = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, none).decode()


def part(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65_537, 2_048)


@pytest.mark.parametrize("form", FORMS)
def test_a_claim_is_signed_so_that_others_can_check_it(
    key: rsa.RSAPrivateKey, form: serialization.PrivateFormat
) -> None:
    claim = signed_claim("12345", read_key(pem(key, form)), 1_000_000)
    head, body, signature = claim.split(".")
    key.public_key().verify(
        part(signature), f"{head}.{body}".encode(), padding.PKCS1v15(), SHA256()
    )
    assert json.loads(part(head)) == {"alg": "RS256", "typ": "JWT"}
    assert json.loads(part(body)) == {"iat": 999_940, "exp": 1_000_540, "iss": "12345"}


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
        read_key(text)


async def test_skills_are_fetched_with_the_pass_of_an_app(
    store: Store, tmp_path: Path, key: rsa.RSAPrivateKey
) -> None:
    services, home, file = store.services, tmp_path / "h", tmp_path / "app.pem"
    services.repos["some/repo"] = {"pdf/SKILL.md": skill_text("pdf").encode()}
    file.write_text(pem(key, FORMS[0]))
    write_settings(Home(home), {("skills", "hub_urls"): services.urls})
    (home / ".env").write_text(
        "GITHUB_APP_ID=12345\nGITHUB_APP_INSTALLATION_ID=77\n"
        f"GITHUB_APP_PRIVATE_KEY_PATH={file}\nGITHUB_TOKEN=\nGH_TOKEN=\n"
    )
    async with start({}, home=str(home)) as app:
        app.context.env = {"PATH": ""}
        hub = app.skills().hub
        await hub.fetch("some/repo/pdf")
    asked = [(each.path, each.headers.get("authorization", "")) for each in services.asked]
    passes = [path for path, _ in asked if path.endswith("/access_tokens")]
    assert len(passes) == 1
    assert {words for path, words in asked if "/repos/" in path} == {"Bearer pass-1"}
    assert not any(
        each.headers.get("authorization") for each in services.asked if "raw" in each.path
    )
