"""Refreshes tokens before they expire, in one process at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hermes.codec.values import Value, replace
from hermes.core.errors import ConfigError
from hermes.core.world import World
from hermes.credentials.auth_file import DEAD, AuthEntry, AuthFile
from hermes.credentials.google import request_google_token
from hermes.credentials.key_sources import KeySources
from hermes.credentials.oauth.client import (
    OAuthErrorResponse,
    TokenSet,
    refresh_tokens,
)
from hermes.credentials.oauth.logins import Login, discover_endpoints, exchange_token
from hermes.credentials.stored_key import StoredKey
from hermes.net.http import HttpClient

# Another program may have just used the token and be about to write its successor.
_LOOK_AGAIN_SECONDS: Sequence[float] = (0.0, 0.2, 0.5, 1.0)


class RefreshFailed(Value):
    """The refresh failed. After a `final` failure the login is dead."""

    text: str
    final: bool = False


class TokenRefresher:
    """Refreshes the login tokens of one provider. Concurrent requests for the same login share one
    refresh."""

    def __init__(
        self, sources: KeySources, *, store: AuthFile, http: HttpClient, world: World
    ) -> None:
        self._sources = sources
        self._store = store
        self._http = http
        self._world = world
        self._exchanged_keys: dict[str, StoredKey] = {}
        self._running: dict[str, asyncio.Task[StoredKey | RefreshFailed]] = {}

    @property
    def skew_seconds(self) -> float:
        login = self._sources.login
        return login.skew_seconds if login else 0.0

    def current(self, key: StoredKey) -> StoredKey:
        """Return the key with the token that this process exchanged for a borrowed one, if any."""
        made = self._exchanged_keys.get(key.id)
        return made if made is not None and made.renewal_token == key.renewal_token else key

    async def refresh(self, key: StoredKey, *, stale: str) -> StoredKey | RefreshFailed:
        """Return the key with a token other than `stale`. A cancelled caller does not cancel the
        refresh: the server invalidates a refresh token on first use."""
        task = self._running.get(key.id)
        if task is None:
            task = asyncio.create_task(self._refresh(key, stale))
            self._running[key.id] = task
            task.add_done_callback(lambda _: self._running.pop(key.id, None))
        return await asyncio.shield(task)

    async def close(self) -> None:
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _refresh(self, key: StoredKey, stale: str) -> StoredKey | RefreshFailed:
        login = self._sources.login
        if login is None or not key.renewal_token:
            return RefreshFailed(text=key.note or "it cannot be refreshed")
        try:
            login = await discover_endpoints(login, http=self._http)
            # A credentials file belongs to its owner, even if a person entered its path here.
            if key.own and login.flow != "google":
                return await self._refresh_own(key, stale, login)
            return await self._refresh_borrowed(key, stale, login)
        except ConfigError as error:
            return RefreshFailed(text=str(error))

    async def _refresh_borrowed(
        self, key: StoredKey, stale: str, login: Login
    ) -> StoredKey | RefreshFailed:
        known = self.current(key)
        if known.key and known.key != stale:
            return known
        tokens = await self._request(login, key.renewal_token, key.client_id)
        if isinstance(tokens, OAuthErrorResponse):
            return RefreshFailed(text=tokens.message, final=tokens.is_final)
        account = {login.account_header: tokens.account_id} if tokens.account_id else {}
        self._exchanged_keys[key.id] = fresh = replace(
            key,
            key=tokens.access_token,
            expires_at=tokens.expires_at,
            url=tokens.url or key.url,
            headers={**key.headers, **(account if login.account_header else {})},
        )
        return fresh

    async def _refresh_own(
        self, key: StoredKey, stale: str, login: Login
    ) -> StoredKey | RefreshFailed:
        async with self._store.lock():
            for _ in range(2):
                document = await self._store.read_fresh()
                entry = document.entry(key.provider, key.id)
                if entry is None or entry.is_dead:
                    return RefreshFailed(text="it was removed", final=True)
                now = self._world.clock.now()
                lives = entry.expires_at is None or entry.expires_at - now > self.skew_seconds
                if entry.access_token not in ("", stale) and lives:
                    return self._sources.key_of(entry)
                tokens = await self._request(login, entry.refresh_token, entry.client_id)
                # No await between here and the end of the write.
                if isinstance(tokens, TokenSet):
                    fresh = with_tokens(entry, tokens)
                    document.put(key.provider, fresh)
                    self._store.write(document)
                    return self._sources.key_of(fresh)
                if not tokens.is_final:
                    return RefreshFailed(text=tokens.message)
                if not await self._was_replaced(entry):
                    return await self._mark_dead(entry, tokens)
                stale = entry.access_token
        return RefreshFailed(text="another program keeps refreshing it")

    async def _was_replaced(self, entry: AuthEntry) -> bool:
        """Return whether another program has stored a new refresh token."""
        for pause in _LOOK_AGAIN_SECONDS:
            await asyncio.sleep(pause)
            now = (await self._store.read_fresh()).entry(self._sources.provider, entry.id)
            if now is None or now.refresh_token != entry.refresh_token:
                return True
        return False

    async def _mark_dead(self, entry: AuthEntry, refusal: OAuthErrorResponse) -> RefreshFailed:
        document = await self._store.read_for_edit()
        now = self._world.clock.now()
        dead = replace(
            entry,
            last_status=DEAD,
            last_status_at=now,
            last_error_reason=refusal.code,
            last_error_message=refusal.message,
        )
        document.put(self._sources.provider, dead)
        document.forget_dead(now)
        self._store.write(document)
        return RefreshFailed(text=refusal.message, final=True)

    async def _request(
        self, login: Login, token: str, client_id: str
    ) -> TokenSet | OAuthErrorResponse:
        clock = self._world.clock
        if login.flow == "google":
            return await request_google_token(token, http=self._http, now=clock.now())
        if login.exchange_url:
            return await exchange_token(login, token, http=self._http, clock=clock)
        endpoint = login.token_endpoint(client_id)
        return await refresh_tokens(endpoint, token, http=self._http, now=clock.now())


def with_tokens(entry: AuthEntry, tokens: TokenSet) -> AuthEntry:
    return replace(
        entry,
        access_token=tokens.access_token,
        refresh_token=tokens.refresh_token,
        expires_at=tokens.expires_at,
        account_id=tokens.account_id or entry.account_id,
        base_url=tokens.url or entry.base_url,
    )
