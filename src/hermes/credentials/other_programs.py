"""Reads logins of other programs on this machine; never writes, refreshes or removes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.config.yaml_parser import BadYaml, parse_text
from hermes.credentials.auth_file import Signature, file_signature
from hermes.credentials.oauth.client import as_number, jwt_claims
from hermes.credentials.stored_key import StoredKey, borrowed_key
from hermes.providers.endpoint import LOGIN

_PROGRAM_SECONDS = 5.0
_MOST_BYTES = 1_000_000


class ForeignLogin(Value):
    """A login of another program; `expires_at` is None if unknown."""

    token: str
    expires_at: float | None = None
    url: str = ""
    account_id: str = ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(expires_at={self.expires_at})"


Reader = Callable[[bytes], ForeignLogin | None]


class LoginProgram(Value):
    """A program that stores a login of one provider. `variable` overrides its folder; `command`
    refreshes the login."""

    source: str
    provider: str
    label: str
    folder: str
    file: str
    command: str
    variable: str = ""


LOGIN_PROGRAMS = (
    LoginProgram(
        source="claude_code",
        provider="anthropic",
        label="Claude Code",
        folder=".claude",
        file=".credentials.json",
        variable="CLAUDE_CONFIG_DIR",
        command="claude",
    ),
    LoginProgram(
        source="codex_cli",
        provider="openai-codex",
        label="Codex CLI",
        folder=".codex",
        file="auth.json",
        variable="CODEX_HOME",
        command="codex login",
    ),
    LoginProgram(
        source="qwen_cli",
        provider="qwen-oauth",
        label="Qwen CLI",
        folder=".qwen",
        file="oauth_creds.json",
        command="qwen",
    ),
    LoginProgram(
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
        self._program = next((k for k in LOGIN_PROGRAMS if k.provider == provider), None)
        self._path = _path(self._program, env) if self._program else None
        self._known: tuple[Signature | None, ForeignLogin | None] | None = None

    @property
    def program(self) -> LoginProgram | None:
        return self._program

    @property
    def signature(self) -> Signature | None:
        return file_signature(self._path) if self._path else None

    async def read_key(self) -> StoredKey | None:
        found = await self._read_cached()
        if found is None or self._program is None:
            return None
        return borrowed_key(
            self._program.provider,
            self._program.source,
            found.token,
            label=self._program.label,
            oauth=True,
            expires_at=found.expires_at,
            url=found.url,
            account_id=found.account_id,
            scope=LOGIN,
            note=f"refresh it with `{self._program.command}`",
        )

    async def _read_cached(self) -> ForeignLogin | None:
        if self._path is None or self._program is None:
            return None
        now = self.signature
        if self._known is None or self._known[0] != now:
            self._known = (now, await _read(self._program, self._path) if now else None)
        return self._known[1]


async def _read(keeper: LoginProgram, path: Path) -> ForeignLogin | None:
    try:
        data = (await asyncio.to_thread(path.read_bytes))[:_MOST_BYTES]
    except OSError:
        return None
    found = READERS[keeper.source](data)
    if found is None and keeper.source == "gh_cli":
        return ForeignLogin(token=token) if (token := await read_gh_token()) else None
    return found


def _path(keeper: LoginProgram, env: Mapping[str, str]) -> Path | None:
    if keeper.variable and env.get(keeper.variable):
        return Path(env[keeper.variable]) / keeper.file
    return Path(env["HOME"]) / keeper.folder / keeper.file if env.get("HOME") else None


def _decode_object(data: bytes) -> JsonObject:
    try:
        return decode(dict[str, JsonValue], data)
    except DecodeError:
        return {}


def _parse_claude_code(data: bytes) -> ForeignLogin | None:
    held = _decode_object(data).get("claudeAiOauth")
    if not isinstance(held, dict) or not isinstance(held.get("accessToken"), str):
        return None
    return ForeignLogin(token=held["accessToken"], expires_at=_seconds(held.get("expiresAt")))


def _parse_codex(data: bytes) -> ForeignLogin | None:
    held = _decode_object(data).get("tokens")
    if not isinstance(held, dict) or not isinstance(held.get("access_token"), str):
        return None
    account = held.get("account_id")
    return ForeignLogin(
        token=held["access_token"],
        expires_at=as_number(jwt_claims(held["access_token"]).get("exp")),
        account_id=account if isinstance(account, str) else "",
    )


def _parse_qwen(data: bytes) -> ForeignLogin | None:
    held = _decode_object(data)
    token, place = held.get("access_token"), held.get("resource_url")
    if not isinstance(token, str):
        return None
    host = place.removeprefix("https://").strip("/") if isinstance(place, str) else ""
    host = host.removesuffix("/v1")
    return ForeignLogin(
        token=token,
        expires_at=_seconds(held.get("expiry_date")),
        url=f"https://{host}/v1" if host else "",
    )


def _parse_gh(data: bytes) -> ForeignLogin | None:
    try:
        host = parse_text(data.decode("utf-8", "replace")).get("github.com")
    except BadYaml:
        return None
    token = host.get("oauth_token") if isinstance(host, dict) else None
    return ForeignLogin(token=token) if isinstance(token, str) and token else None


async def read_gh_token(program: str = "gh") -> str:
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
    found = as_number(milliseconds)
    return None if found is None else found / 1000


READERS: dict[str, Reader] = {
    "claude_code": _parse_claude_code,
    "codex_cli": _parse_codex,
    "qwen_cli": _parse_qwen,
    "gh_cli": _parse_gh,
}
