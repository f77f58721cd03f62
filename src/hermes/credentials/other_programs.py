"""Reads logins of other programs on this machine; never writes, refreshes or removes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.config.yaml_parser import BadYaml, parse_text
from hermes.credentials.auth_file import Signature, file_signature
from hermes.credentials.google import (
    GCLOUD_FILE,
    GCLOUD_FOLDER,
    GCLOUD_LOGIN,
    GCLOUD_VARIABLE,
    parse_credentials,
)
from hermes.credentials.oauth.client import as_number, jwt_claims
from hermes.credentials.stored_key import StoredKey, borrowed_key
from hermes.providers.endpoint import GOOGLE_FILE, LOGIN

_PROGRAM_SECONDS = 5.0
_MOST_BYTES = 1_000_000


# Fields of a StoredKey; without a `key` there is no login.
Fields = dict[str, Any]


class LoginProgram(Value):
    """A program that stores a login of one provider."""

    source: str
    parse: Callable[[bytes], Fields]  # reads its file
    provider: str
    label: str
    folder: str
    file: str
    command: str  # refreshes the login
    variable: str = ""  # overrides its folder
    scope: str = LOGIN  # where its tokens may be sent; see `StoredKey.scope`


class OtherPrograms:
    """The login of another program for one provider. It is read again when the file changes: its
    owner may have refreshed it."""

    def __init__(self, provider: str, env: Mapping[str, str]) -> None:
        self._program = next((k for k in LOGIN_PROGRAMS if k.provider == provider), None)
        self._path: Path | None = None
        self._known: tuple[Signature, StoredKey | None] | None = None
        if self._program is not None:
            folder = env.get(self._program.variable, "")
            if not folder and env.get("HOME"):
                folder = f"{env['HOME']}/{self._program.folder}"
            self._path = Path(folder) / self._program.file if folder else None

    @property
    def signature(self) -> Signature | None:
        return file_signature(self._path) if self._path else None

    async def read_key(self) -> StoredKey | None:
        now = self.signature
        if self._program is None or self._path is None or now is None:
            return None
        if self._known is None or self._known[0] != now:
            self._known = (now, await _read(self._program, self._path))
        return self._known[1]


async def _read(program: LoginProgram, path: Path) -> StoredKey | None:
    try:
        data = (await asyncio.to_thread(path.read_bytes))[:_MOST_BYTES]
    except OSError:
        return None
    fields = program.parse(data)
    if not fields.get("key") and program.source == "gh_cli":
        fields = {"key": await read_gh_token()}
    if fields.get("key") and program.source == "gcloud":
        # The file is exchanged for a token; `google.py` reads it when one is needed.
        fields = {"key": str(path)}
    if not fields.get("key") or not isinstance(fields["key"], str):
        return None
    return borrowed_key(
        program.provider,
        program.source,
        label=program.label,
        oauth=True,
        scope=program.scope,
        note=f"refresh it with `{program.command}`",
        **fields,
    )


def _decode_object(data: bytes, section: str = "") -> JsonObject:
    try:
        found: JsonValue = decode(dict[str, JsonValue], data)
    except DecodeError:
        return {}
    if section:
        found = found.get(section)
    return found if isinstance(found, dict) else {}


def _parse_claude_code(data: bytes) -> Fields:
    login = _decode_object(data, "claudeAiOauth")
    return {"key": login.get("accessToken"), "expires_at": _seconds(login.get("expiresAt"))}


def _parse_codex(data: bytes) -> Fields:
    tokens = _decode_object(data, "tokens")
    token, account = tokens.get("access_token"), tokens.get("account_id")
    expires_at = jwt_claims(token).get("exp") if isinstance(token, str) else None
    return {
        "key": token,
        "expires_at": as_number(expires_at),
        "account_id": account if isinstance(account, str) else "",
    }


def _parse_qwen(data: bytes) -> Fields:
    login = _decode_object(data)
    url = login.get("resource_url")
    host = url.removeprefix("https://").strip("/") if isinstance(url, str) else ""
    host = host.removesuffix("/v1")
    return {
        "key": login.get("access_token"),
        "expires_at": _seconds(login.get("expiry_date")),
        "url": f"https://{host}/v1" if host else "",
    }


def _parse_gh(data: bytes) -> Fields:
    try:
        host = parse_text(data.decode("utf-8", "replace")).get("github.com")
    except BadYaml:
        return {}
    return {"key": host.get("oauth_token")} if isinstance(host, dict) else {}


def _parse_gcloud(data: bytes) -> Fields:
    credentials = parse_credentials(data)
    return {} if credentials is None else {"key": credentials.refresh_token}


async def read_gh_token(program: str = "gh") -> str:
    """Ask `gh`, whose newer versions store the token in the system keyring; "" if it has none."""
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


LOGIN_PROGRAMS = (
    LoginProgram(
        source="claude_code",
        parse=_parse_claude_code,
        provider="anthropic",
        label="Claude Code",
        folder=".claude",
        file=".credentials.json",
        variable="CLAUDE_CONFIG_DIR",
        command="claude",
    ),
    LoginProgram(
        source="codex_cli",
        parse=_parse_codex,
        provider="openai-codex",
        label="Codex CLI",
        folder=".codex",
        file="auth.json",
        variable="CODEX_HOME",
        command="codex login",
    ),
    LoginProgram(
        source="qwen_cli",
        parse=_parse_qwen,
        provider="qwen-oauth",
        label="Qwen CLI",
        folder=".qwen",
        file="oauth_creds.json",
        command="qwen",
    ),
    LoginProgram(
        source="gh_cli",
        parse=_parse_gh,
        provider="copilot",
        label="GitHub CLI",
        folder=".config/gh",
        file="hosts.yml",
        variable="GH_CONFIG_DIR",
        command="gh auth login",
    ),
    LoginProgram(
        source="gcloud",
        parse=_parse_gcloud,
        provider="vertex",
        label="gcloud CLI",
        folder=GCLOUD_FOLDER,
        file=GCLOUD_FILE,
        variable=GCLOUD_VARIABLE,
        command=GCLOUD_LOGIN,
        scope=GOOGLE_FILE,
    ),
)
