"""Google Cloud credentials, and models on Vertex AI."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import rsa

from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.errors import ConfigError, ProviderError
from hermes.core.world import World
from hermes.models.model_ref import ModelRef
from hermes.models.models import Models
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import calls, fails, says
from tests.credentials.rsa_keys import PKCS8, pem, verified
from tests.loopback import Asked, Said, serving
from tests.models.ledger import Ledger
from tests.providers.asking import HI, answered, ask, then

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
EMAIL = "agent@my-project.iam.gserviceaccount.com"
KEY = rsa.generate_private_key(65_537, 2_048)


class GoogleTokens:
    """Google's token endpoint: it verifies assertions as strictly as the real one."""

    def __init__(self) -> None:
        self.url = ""
        self.issued = 0

    def answer(self, asked: Asked) -> Said:
        if (asked.method, asked.path) != ("POST", "/token"):
            return Said(404)
        fields = asked.fields
        match fields.get("grant_type"):
            case "urn:ietf:params:oauth:grant-type:jwt-bearer":
                problem = self._problem(fields.get("assertion", ""))
            case "refresh_token":
                wanted = {"client_id": "gcloud", "client_secret": "s", "refresh_token": "1//r"}
                sent = {name: fields.get(name) for name in wanted}
                problem = "" if sent == wanted else "Bad Request"
            case other:
                return Said(400, {"error": "unsupported_grant_type", "error_description": other})
        if problem:
            return Said(400, {"error": "invalid_grant", "error_description": problem})
        self.issued += 1
        token = {"access_token": f"ya29.{self.issued}", "expires_in": 3599, "token_type": "Bearer"}
        return Said(200, token)

    def _problem(self, assertion: str) -> str:
        try:
            header, claims = verified(assertion, KEY.public_key())
        except (ValueError, InvalidSignature):
            return "Invalid JWT Signature."
        lifetime = claims["exp"] - claims["iat"]
        if not 0 < lifetime <= 3600 or abs(claims["iat"] - time.time()) > 300:
            return "Invalid JWT: Token must be a short-lived token (60 minutes)"
        expected = {"iss": EMAIL, "scope": SCOPE, "aud": f"{self.url}/token"}
        same = {name: claims.get(name) for name in expected} == expected
        return "" if same and header.get("kid") == "key-1" else "Invalid JWT"


def service_account(tokens: GoogleTokens, **changes: str) -> dict[str, str]:
    return {
        "type": "service_account",
        "project_id": "my-project",
        "private_key_id": "key-1",
        "private_key": pem(KEY, PKCS8),
        "client_email": EMAIL,
        "client_id": "1234567890",
        "auth_uri": "https://accounts.google.com/o/oauth2/auth",
        "token_uri": f"{tokens.url}/token",
        "universe_domain": "googleapis.com",
        **changes,
    }


def person(tokens: GoogleTokens) -> dict[str, str]:
    return {
        "type": "authorized_user",
        "account": "",
        "client_id": "gcloud",
        "client_secret": "s",
        "refresh_token": "1//r",
        "quota_project_id": "paying-project",
        "token_uri": f"{tokens.url}/token",
    }


def write(path: Path, content: object) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return str(path)


def read(path: Path) -> object:
    return json.loads(path.read_text())


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "home"


def open_models(home: Path, env: dict[str, str]) -> Models:
    return Models(load(Home(home), env=env), World(), env=env)


def base(server: ScriptedServer) -> str:
    return f"{server.url}/v1/projects/my-project/locations/global"


async def test_gemini_answers_a_service_account(home: Path) -> None:
    tokens = GoogleTokens()
    steps = [calls("look", at="here"), says("A wall."), says("Again.")]
    async with serving(tokens.answer) as tokens.url, ScriptedServer(steps) as server:
        env = {
            "GOOGLE_APPLICATION_CREDENTIALS": write(home / "key.json", service_account(tokens)),
            "VERTEX_BASE_URL": base(server),
        }
        models = open_models(home, env)
        provider = models.connect("gemini-3.8-flash", "vertex", Ledger())[0]
        first = await ask(provider, HI)
        second = await ask(provider, then(HI, *answered(first.whole)))
        other = await ask(models.connect("google/gemini-2.5-pro", "vertex", Ledger())[0])
        await models.close()
    assert [second.shown, other.shown] == ["A wall.", "Again."]
    assert {request.path for request in server.requests} == {
        "/v1/projects/my-project/locations/global/endpoints/openapi/chat/completions"
    }
    assert [request.body["model"] for request in server.requests] == [
        *("google/gemini-3.8-flash",) * 2,
        "google/gemini-2.5-pro",
    ]
    sent = {request.headers["authorization"] for request in server.requests}
    # One token serves all sessions of a process.
    assert sent == {"Bearer ya29.1"}


async def test_claude_is_named_in_the_path(home: Path) -> None:
    tokens = GoogleTokens()
    steps = [calls("look", at="here"), says("A wall.")]
    async with serving(tokens.answer) as tokens.url, ScriptedServer(steps) as server:
        env = {
            "GOOGLE_APPLICATION_CREDENTIALS": write(home / "key.json", service_account(tokens)),
            "VERTEX_BASE_URL": base(server),
        }
        models = open_models(home, env)
        provider = models.connect("claude-sonnet-4.5@20250929", "vertex", Ledger())[0]
        first = await ask(provider, HI)
        last = await ask(provider, then(HI, *answered(first.whole)))
        await models.close()
    assert last.shown == "A wall."
    path = "/v1/projects/my-project/locations/global/publishers/anthropic/models"
    for request in server.requests:
        assert request.path == f"{path}/claude-sonnet-4-5@20250929:streamRawPredict"
        body: dict[str, Any] = json.loads(request.raw)
        assert "model" not in body
        assert (body["anthropic_version"], body["stream"]) == ("vertex-2023-10-16", True)
        assert request.headers["authorization"] == "Bearer ya29.1"
        assert "x-api-key" not in request.headers


async def test_the_login_of_gcloud_is_used_when_nothing_is_configured(home: Path) -> None:
    tokens = GoogleTokens()
    async with serving(tokens.answer) as tokens.url, ScriptedServer([says("Hello.")]) as server:
        folder = home / ".config/gcloud"
        write(folder / "application_default_credentials.json", person(tokens))
        models = open_models(home, {"HOME": str(home), "VERTEX_BASE_URL": base(server)})
        heard = await ask(models.connect("gemini-3.8-flash", "vertex", Ledger())[0])
        await models.close()
    assert heard.shown == "Hello."
    (request,) = server.requests
    assert request.headers["authorization"] == "Bearer ya29.1"
    assert request.headers["x-goog-user-project"] == "paying-project"
    assert read(folder / "application_default_credentials.json") == person(tokens)


async def test_a_refused_token_is_renewed(home: Path) -> None:
    tokens = GoogleTokens()
    steps = [fails(401, "expired"), says("Hello.")]
    async with serving(tokens.answer) as tokens.url, ScriptedServer(steps) as server:
        env = {
            "GOOGLE_APPLICATION_CREDENTIALS": write(home / "key.json", service_account(tokens)),
            "VERTEX_BASE_URL": base(server),
        }
        models = open_models(home, env)
        heard = await ask(models.connect("gemini-3.8-flash", "vertex", Ledger())[0])
        await models.close()
    assert heard.shown == "Hello."
    assert [request.headers["authorization"] for request in server.requests] == [
        "Bearer ya29.1",
        "Bearer ya29.2",
    ]


@pytest.mark.parametrize(
    ("env", "url"),
    [
        ({}, "https://aiplatform.googleapis.com/v1/projects/my-project/locations/global"),
        (
            {"GOOGLE_CLOUD_LOCATION": "us-east5", "GOOGLE_CLOUD_PROJECT": "other"},
            "https://us-east5-aiplatform.googleapis.com/v1/projects/other/locations/us-east5",
        ),
    ],
)
async def test_the_address_names_project_and_location(
    home: Path, env: dict[str, str], url: str
) -> None:
    file = write(home / "key.json", service_account(GoogleTokens()))
    models = open_models(home, {"GOOGLE_APPLICATION_CREDENTIALS": file, **env})
    gemini = models.resolver.endpoint(ModelRef(provider="vertex", model="gemini-3.8-flash"))
    claude = models.resolver.endpoint(ModelRef(provider="vertex", model="claude-opus-5.5"))
    await models.close()
    assert gemini.url == f"{url}/endpoints/openapi"
    assert claude.url == f"{url}/publishers/anthropic/models"
    assert (gemini.key, claude.profile.price is None) == (file, False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        ({"type": "external_account", "audience": "x"}, "neither a service account key"),
        ([], "neither a service account key"),
        ({"type": "service_account", "project_id": "p"}, "neither a service account key"),
    ],
)
async def test_an_unusable_file_is_named(home: Path, content: object, message: str) -> None:
    path = home / "key.json"
    if content is not None:
        write(path, content)
    models = open_models(home, {"GOOGLE_APPLICATION_CREDENTIALS": str(path)})
    with pytest.raises(ConfigError, match=f"key.json.*{message}|{message}"):
        models.connect("gemini-3.8-flash", "vertex", Ledger())
    await models.close()


async def test_missing_credentials_are_explained(home: Path) -> None:
    models = open_models(home, {"HOME": str(home), "GOOGLE_CLOUD_PROJECT": "p"})
    with pytest.raises(ConfigError, match="gcloud auth application-default login"):
        models.connect("gemini-3.8-flash", "vertex", Ledger())
    await models.close()


async def test_the_words_of_google_are_shown_when_it_refuses(home: Path) -> None:
    tokens = GoogleTokens()
    stranger = pem(rsa.generate_private_key(65_537, 2_048), PKCS8)
    async with serving(tokens.answer) as tokens.url, ScriptedServer([says("no")]) as server:
        content = service_account(tokens, private_key=stranger)
        env = {
            "GOOGLE_APPLICATION_CREDENTIALS": write(home / "key.json", content),
            "VERTEX_BASE_URL": base(server),
        }
        models = open_models(home, env)
        with pytest.raises(ProviderError, match=r"Invalid JWT Signature") as caught:
            await ask(models.connect("gemini-3.8-flash", "vertex", Ledger())[0])
        await models.close()
    assert server.requests == []
    assert "PRIVATE" not in str(caught.value)


async def test_a_token_address_without_encryption_gets_nothing(home: Path) -> None:
    content = service_account(GoogleTokens(), token_uri="http://tokens.example.com/token")
    async with ScriptedServer([says("no")]) as server:
        env = {
            "GOOGLE_APPLICATION_CREDENTIALS": write(home / "key.json", content),
            "VERTEX_BASE_URL": base(server),
        }
        models = open_models(home, env)
        with pytest.raises(ProviderError, match="not an https address"):
            await ask(models.connect("gemini-3.8-flash", "vertex", Ledger())[0])
        await models.close()
