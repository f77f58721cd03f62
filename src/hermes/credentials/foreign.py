"""Reads logins of other programs on this machine; never writes, refreshes or removes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.config.yaml_read import BadYaml, parse_text
from hermes.credentials.held import Held, borrowed
from hermes.credentials.oauth.tokens import claims, number
from hermes.credentials.store import Signature, signature_of
from hermes.providers.scope import LOGIN

_PROGRAM_SECONDS = 5.0
_MOST_BYTES = 1_000_000


class Found(Value):
    """A login of another program; `expires_at` is None if unknown."""

    token: str
    expires_at: float | None = None
    url: str = ""
    account_id: str = ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(expires_at={self.expires_at})"


Reader = Callable[[bytes], Found | None]


class Keeper(Value):
    """A program that stores a login of one provider. `variable` overrides its folder; `command`
    refreshes the login."""

    source: str
    provider: str
    label: str
    folder: str
    file: str
    command: str
    variable: str = ""


KEEPERS = (
    Keeper(
        source="claude_code",
        provider="anthropic",
        label="Claude Code",
        folder=".claude",
        file=".credentials.json",
        variable="CLAUDE_CONFIG_DIR",
        command="claude",
    ),
    Keeper(
        source="codex_cli",
        provider="openai-codex",
        label="Codex CLI",
        folder=".codex",
        file="auth.json",
        variable="CODEX_HOME",
        command="codex login",
    ),
    Keeper(
        source="qwen_cli",
        provider="qwen-oauth",
        label="Qwen CLI",
        folder=".qwen",
        file="oauth_creds.json",
        command="qwen",
    ),
    Keeper(
        source="gh_cli",
        provider="copilot",
        label="GitHub CLI",
        folder=".config/gh",
        file="hosts.yml",
        variable="GH_CONFIG_DIR",
        command="gh auth login",
    ),
)


class OtherPrograms:
    """The login of another program for one provider. It is read again when the file changes: its
    owner may have refreshed it."""

    def __init__(self, provider: str, env: Mapping[str, str]) -> None:
        self._keeper = next((k for k in KEEPERS if k.provider == provider), None)
        self._path = _path(self._keeper, env) if self._keeper else None
        self._known: tuple[Signature | None, Found | None] | None = None

    @property
    def keeper(self) -> Keeper | None:
        return self._keeper

    @property
    def signature(self) -> Signature | None:
        return signature_of(self._path) if self._path else None

    async def held(self) -> Held | None:
        found = await self._found()
        if found is None or self._keeper is None:
            return None
        return borrowed(
            self._keeper.provider,
            self._keeper.source,
            found.token,
            label=self._keeper.label,
            oauth=True,
            expires_at=found.expires_at,
            url=found.url,
            account_id=found.account_id,
            scope=LOGIN,
            note=f"refresh it with `{self._keeper.command}`",
        )

    async def _found(self) -> Found | None:
        if self._path is None or self._keeper is None:
            return None
        now = self.signature
        if self._known is None or self._known[0] != now:
            self._known = (now, await _read(self._keeper, self._path) if now else None)
        return self._known[1]


async def _read(keeper: Keeper, path: Path) -> Found | None:
    try:
        data = (await asyncio.to_thread(path.read_bytes))[:_MOST_BYTES]
    except OSError:
        return None
    found = READERS[keeper.source](data)
    if found is None and keeper.source == "gh_cli":
        return Found(token=token) if (token := await token_of_gh()) else None
    return found


def _path(keeper: Keeper, env: Mapping[str, str]) -> Path | None:
    if keeper.variable and env.get(keeper.variable):
        return Path(env[keeper.variable]) / keeper.file
    return Path(env["HOME"]) / keeper.folder / keeper.file if env.get("HOME") else None


def _object(data: bytes) -> JsonObject:
    try:
        return decode(dict[str, JsonValue], data)
    except DecodeError:
        return {}


def _claude_code(data: bytes) -> Found | None:
    held = _object(data).get("claudeAiOauth")
    if not isinstance(held, dict) or not isinstance(held.get("accessToken"), str):
        return None
    return Found(token=held["accessToken"], expires_at=_seconds(held.get("expiresAt")))


def _codex(data: bytes) -> Found | None:
    held = _object(data).get("tokens")
    if not isinstance(held, dict) or not isinstance(held.get("access_token"), str):
        return None
    account = held.get("account_id")
    return Found(
        token=held["access_token"],
        expires_at=number(claims(held["access_token"]).get("exp")),
        account_id=account if isinstance(account, str) else "",
    )


def _qwen(data: bytes) -> Found | None:
    held = _object(data)
    token, place = held.get("access_token"), held.get("resource_url")
    if not isinstance(token, str):
        return None
    host = place.removeprefix("https://").strip("/") if isinstance(place, str) else ""
    host = host.removesuffix("/v1")
    return Found(
        token=token,
        expires_at=_seconds(held.get("expiry_date")),
        url=f"https://{host}/v1" if host else "",
    )


def _gh(data: bytes) -> Found | None:
    try:
        host = parse_text(data.decode("utf-8", "replace")).get("github.com")
    except BadYaml:
        return None
    token = host.get("oauth_token") if isinstance(host, dict) else None
    return Found(token=token) if isinstance(token, str) and token else None


async def token_of_gh(program: str = "gh") -> str:
    """Asks `gh`, whose newer versions store the token in the system keyring; "" if it has none."""
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            "auth",
            "token",
            "--hostname",
            "github.com",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return ""
    try:
        async with asyncio.timeout(_PROGRAM_SECONDS):
            out, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return ""
    return out.decode("utf-8", "replace").strip() if process.returncode == 0 else ""


def _seconds(milliseconds: JsonValue) -> float | None:
    found = number(milliseconds)
    return None if found is None else found / 1000


READERS: dict[str, Reader] = {
    "claude_code": _claude_code,
    "codex_cli": _codex,
    "qwen_cli": _qwen,
    "gh_cli": _gh,
}
