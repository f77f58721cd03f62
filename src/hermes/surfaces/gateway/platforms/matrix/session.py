"""The login of the Matrix account, and what failed requests mean."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
from nio import AsyncClient, AsyncClientConfig, ErrorResponse, LoginResponse, WhoamiResponse
from nio.crypto import ENCRYPTION_ENABLED

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.core.errors import (
    ConfigError,
    LoginRejected,
    PlatformError,
    PlatformUnreachable,
    PostRejected,
    PostUncertain,
    TargetGone,
)
from hermes.surfaces.gateway.platform import PlatformContext

T = TypeVar("T")

REQUEST_SECONDS = 40.0
# The library logs every event of every room.
logging.getLogger("nio").setLevel(logging.WARNING)
_LOGIN_CODES = ("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED")


class StoredLogin(Value):
    """A login that later starts use again, because encryption belongs to its device."""

    user_id: str
    device_id: str
    access_token: str


class MatrixSession:
    """One client with its login. `e2ee` is off, optional or required."""

    def __init__(self, context: PlatformContext) -> None:
        settings = context.settings
        self._context = context
        mode = settings.get("MATRIX_E2EE_MODE", "").strip().lower() or "optional"
        if settings.get("MATRIX_ENCRYPTION", "").strip().lower() == "true":
            mode = "required"
        if mode == "required" and not ENCRYPTION_ENABLED:
            raise ConfigError("Encryption needs a library; run `hermes extras add matrix`.")
        self.e2ee = mode
        self._login_path = context.folder / "login.json"
        store = context.folder / "store"
        store.mkdir(mode=0o700, parents=True, exist_ok=True)
        config = AsyncClientConfig(
            encryption_enabled=mode != "off" and ENCRYPTION_ENABLED,
            store_sync_tokens=False,
            # Our own rules say when to try again.
            max_limit_exceeded=0,
            max_timeouts=0,
            request_timeout=REQUEST_SECONDS,
        )
        self.client = AsyncClient(
            settings.get("MATRIX_HOMESERVER", ""),
            settings.get("MATRIX_USER_ID", ""),
            device_id=settings.get("MATRIX_DEVICE_ID", ""),
            store_path=str(store),
            config=config,
            proxy=settings.get("MATRIX_PROXY") or None,
        )
        self._is_open = False
        self._lock = asyncio.Lock()

    async def open(self) -> str:
        """Log in unless that is done; returns the user id."""
        async with self._lock:
            if not self._is_open:
                await self._log_in()
                self._is_open = True
        return str(self.client.user_id)

    async def _log_in(self) -> None:
        settings = self._context.settings
        if token := settings.get("MATRIX_ACCESS_TOKEN"):
            self.client.access_token = token
            who = await self.request(self.client.whoami())
            assert isinstance(who, WhoamiResponse)
            self.client.restore_login(who.user_id, who.device_id or "", token)
            return
        if await self._restore():
            return
        done = await self.request(
            self.client.login(settings.get("MATRIX_PASSWORD", ""), device_name="Hermes")
        )
        assert isinstance(done, LoginResponse)
        stored = StoredLogin(
            user_id=done.user_id, device_id=done.device_id, access_token=done.access_token
        )
        await asyncio.to_thread(replace_file, self._login_path, encode(stored))

    async def _restore(self) -> bool:
        """Use the login of an earlier start, unless the server has ended it."""
        try:
            raw = await asyncio.to_thread(self._login_path.read_bytes)
            login = decode(StoredLogin, raw)
        except (OSError, DecodeError):
            return False
        if login.user_id.lower() != self._context.settings.get("MATRIX_USER_ID", "").lower():
            return False
        self.client.restore_login(login.user_id, login.device_id, login.access_token)
        try:
            await self.request(self.client.whoami())
        except LoginRejected:
            return False
        return True

    async def close(self) -> None:
        await self.client.close()
        self._is_open = False

    async def request(self, work: Awaitable[T], *, sends: bool = False) -> T:
        """The response to a request. Raises what a failure means."""
        try:
            response = await work
        except (aiohttp.ClientConnectorError, aiohttp.InvalidURL) as error:
            raise PlatformUnreachable(f"The homeserver cannot be reached: {error}") from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            text = f"The connection to the homeserver broke: {str(error) or type(error).__name__}"
            raise PostUncertain(text) if sends else PlatformUnreachable(text) from error
        if isinstance(response, ErrorResponse):
            raise refusal_error(response, sends=sends)
        return response


def refusal_error(response: Any, *, sends: bool) -> PlatformError:
    code, text = str(response.status_code or ""), f"Matrix: {response}"
    if code == "M_LIMIT_EXCEEDED":
        return PlatformUnreachable(text, retry_after=(response.retry_after_ms or 5000) / 1000)
    if code in _LOGIN_CODES or (code == "M_FORBIDDEN" and not sends):
        return LoginRejected(
            "The homeserver does not accept the login; run `hermes gateway setup matrix`."
        )
    if code in ("M_FORBIDDEN", "M_NOT_FOUND", "M_GUEST_ACCESS_FORBIDDEN"):
        return TargetGone(text)
    if not code or code == "M_UNKNOWN":
        # A proxy on the way answers with a page.
        return PostUncertain(text) if sends else PlatformUnreachable(text)
    return PostRejected(text)


def store_path(context: PlatformContext) -> Path:
    """Where the position in the stream of events is stored."""
    return context.folder / "sync.json"
