"""A GitHub App shows who it is as GitHub wants it, and its key goes nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from hermes.app.start import start
from hermes.config.edit import write_settings
from hermes.config.home import Home
from tests.credentials.rsa_keys import PKCS1, pem
from tests.skills.bench import skill_text
from tests.skills.hub.conftest import Store


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65_537, 2_048)


async def test_skills_are_fetched_with_the_pass_of_an_app(
    store: Store, tmp_path: Path, key: rsa.RSAPrivateKey
) -> None:
    services, home, file = store.services, tmp_path / "h", tmp_path / "app.pem"
    services.repos["some/repo"] = {"pdf/SKILL.md": skill_text("pdf").encode()}
    file.write_text(pem(key, PKCS1))
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
