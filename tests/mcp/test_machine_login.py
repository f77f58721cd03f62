"""Logins without a person, against a real authorization server on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hermes.config.extension_settings import McpOauthSettings
from hermes.core.messages import Text
from hermes.mcp.oauth.store import OAuthStore
from hermes.mcp.server import IssuerFailed, LoginRejected, McpServer
from hermes.testing.context import ScriptedContext
from tests.mcp.conftest import Make, tool_of
from tests.mcp.oauth_stage import Authority


def machine(authority: Authority, **own: str) -> McpServer:
    oauth = McpOauthSettings(grant="client_credentials", client_id="robot", **own)  # type: ignore[arg-type]
    return McpServer(
        name="locked", url=f"{authority.url}/mcp", auth="oauth", oauth=oauth, timeout=60
    )


@pytest.fixture
def store(tmp_path: Path) -> OAuthStore:
    return OAuthStore(tmp_path / "tokens", "locked")


async def test_a_secret_of_the_settings_opens_the_server_without_anybody(
    authority: Authority, store: OAuthStore, make: Make, ctx: ScriptedContext
) -> None:
    authority.machines["robot"] = "a secret"
    servers = make(machine(authority, client_secret="a secret"))
    output = await ctx.call(await tool_of(servers, "mcp_locked_treasure"))
    assert output.parts == (Text(text="gold"),)
    assert [form["grant_type"] for form in authority.asked] == ["client_credentials"]
    assert authority.asked[0]["resource"] == f"{authority.url}/mcp"
    kept = store.token()
    assert kept is not None
    assert kept.access_token in authority.tokens


async def test_a_secret_may_stand_in_the_environment(authority: Authority, make: Make) -> None:
    authority.machines["robot"] = "sk-never-shown-0000"
    servers = make(machine(authority, client_secret="${PROBE_API_KEY}"))
    assert len((await servers.link("locked").listing()).tools) == 1


async def test_a_key_signs_in_place_of_a_secret(
    authority: Authority, make: Make, tmp_path: Path
) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    key = tmp_path / "key.pem"
    key.write_bytes(private.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    authority.machines["robot"] = private.public_key().public_bytes(pem, kind).decode()
    server = machine(authority, private_key_file=str(key), signing_algorithm="ES256")
    assert len((await make(server).link("locked").listing()).tools) == 1
    assert "client_assertion" in authority.asked[0]


async def test_a_token_that_is_refused_or_old_is_asked_for_anew(
    authority: Authority, make: Make, ctx: ScriptedContext
) -> None:
    authority.machines["robot"] = "a secret"
    authority.lives = 30
    treasure = await tool_of(
        make(machine(authority, client_secret="a secret")), "mcp_locked_treasure"
    )
    authority.lives = 3600
    assert not (await ctx.call(treasure)).failed
    before = len(authority.asked)
    authority.tokens.clear()
    assert not (await ctx.call(treasure)).failed
    assert len(authority.asked) == before + 1


async def test_a_wrong_secret_is_reported_as_such(authority: Authority, make: Make) -> None:
    authority.machines["robot"] = "a secret"
    with pytest.raises(LoginRejected, match="rejects the configured login"):
        await make(machine(authority, client_secret="another")).link("locked").listing()


async def test_the_secret_is_shown_to_no_other_authority_than_the_first(
    authority: Authority, store: OAuthStore, make: Make
) -> None:
    authority.machines["robot"] = "a secret"
    server = machine(authority, client_secret="a secret")
    await make(server).link("locked").listing()
    shown = len(authority.asked)
    authority.tokens.clear()
    authority.issuer = authority.url.replace("127.0.0.1", "localhost")
    with pytest.raises(LoginRejected):
        await make(server).link("locked").listing()
    assert len(authority.asked) == shown


async def test_a_login_of_settings_that_hold_nothing_is_a_fault(authority: Authority) -> None:
    assert "client_secret or a private_key_file" in machine(authority).fault()


async def test_a_failing_authorization_server_is_not_a_rejected_login(
    authority: Authority, make: Make
) -> None:
    authority.machines["robot"] = "a secret"
    authority.broken = True
    servers = make(machine(authority, client_secret="a secret"))
    with pytest.raises(IssuerFailed, match="HTTP 503"):
        await servers.link("locked").listing()
