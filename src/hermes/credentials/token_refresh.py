"""Refreshes tokens before they expire, in one process at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hermes.codec.values import Value, replace
from hermes.core.errors import ConfigError
from hermes.core.world import World
from hermes.credentials.auth_file import DEAD, AuthDocument, AuthEntry, AuthFile
from hermes.credentials.key_sources import KeySources
from hermes.credentials.oauth.client import (
    TERMINAL_ERRORS,
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
    """Refreshes for one provider. Concurrent requests for the same login share one refresh."""

    def __init__(
        self, holdings: KeySources, *, store: AuthFile, http: HttpClient, world: World
    ) -> None:
        self._sources = holdings
        self._store = store
        self._http = http
        self._world = world
        self._exchanged_keys: dict[str, StoredKey] = {}
        self._running: dict[str, asyncio.Task[StoredKey | RefreshFailed]] = {}

    @property
    def skew_seconds(self) -> float:
        login = self._sources.login
        return login.skew_seconds if login else 0.0

    def current(self, held: StoredKey) -> StoredKey:
        """The key with the token that this process exchanged for a borrowed one, if any."""
        made = self._exchanged_keys.get(held.id)
        return made if made is not None and made.renewal_token == held.renewal_token else held

    async def refresh(self, held: StoredKey, *, stale: str) -> StoredKey | RefreshFailed:
        """The key with a token other than `stale`. A cancelled caller does not cancel the refresh:
        the server invalidates a refresh token on first use."""
        task = self._running.get(held.id)
        if task is None:
            task = asyncio.create_task(self._refresh(held, stale))
            self._running[held.id] = task
            task.add_done_callback(lambda _: self._running.pop(held.id, None))
        return await asyncio.shield(task)

    async def close(self) -> None:
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _refresh(self, held: StoredKey, stale: str) -> StoredKey | RefreshFailed:
        login = self._sources.login
        if login is None or not held.renewal_token:
            return RefreshFailed(text=held.note or "it cannot be refreshed")
        try:
            login = await discover_endpoints(login, http=self._http)
            if held.own:
                return await self._refresh_own(held, stale, login)
            return await self._refresh_borrowed(held, stale, login)
        except ConfigError as error:
            return RefreshFailed(text=str(error))

    async def _refresh_borrowed(
        self, held: StoredKey, stale: str, login: Login
    ) -> StoredKey | RefreshFailed:
        known = self.current(held)
        if known.key and known.key != stale:
            return known
        tokens = await self._request(login, held.renewal_token, held.client_id)
        if isinstance(tokens, OAuthErrorResponse):
            return RefreshFailed(text=tokens.message, final=_is_final(tokens))
        self._exchanged_keys[held.id] = fresh = replace(
            held, key=tokens.access_token, expires_at=tokens.expires_at, url=tokens.url or held.url
        )
        return fresh

    async def _refresh_own(
        self, held: StoredKey, stale: str, login: Login
    ) -> StoredKey | RefreshFailed:
        async with self._store.lock.hold():
            for _ in range(2):
                document = await self._store.read_fresh()
                entry = document.entry(held.provider, held.id)
                if entry is None or entry.is_dead:
                    return RefreshFailed(text="it was removed", final=True)
                if entry.access_token != stale and self._is_valid(entry):
                    return self._sources.key_of(entry)
                tokens = await self._request(login, entry.refresh_token, entry.client_id)
                # No await between here and the end of the write.
                if isinstance(tokens, TokenSet):
                    return self._store_tokens(document, entry, tokens)
                if not _is_final(tokens):
                    return RefreshFailed(text=tokens.message)
                if not await self._was_replaced(entry):
                    return await self._mark_dead(entry, tokens)
                stale = entry.access_token
        return RefreshFailed(text="another program keeps refreshing it")

    def _store_tokens(
        self, document: AuthDocument, entry: AuthEntry, tokens: TokenSet
    ) -> StoredKey:
        fresh = replace(
            entry,
            access_token=tokens.access_token,
            refresh_token=tokens.refresh_token,
            expires_at=tokens.expires_at,
            account_id=tokens.account_id or entry.account_id,
            base_url=tokens.url or entry.base_url,
        )
        document.put(self._sources.provider, fresh)
        self._store.write(document)
        return self._sources.key_of(fresh)

    async def _was_replaced(self, entry: AuthEntry) -> bool:
        """Whether another program has stored a new refresh token."""
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
        if login.exchange_url:
            return await exchange_token(login, token, http=self._http, clock=clock)
        endpoint = login.token_endpoint(client_id)
        return await refresh_tokens(endpoint, token, http=self._http, now=clock.now())

    def _is_valid(self, entry: AuthEntry) -> bool:
        now = self._world.clock.now()
        return bool(entry.access_token) and (
            entry.expires_at is None or entry.expires_at - now > self.skew_seconds
        )


def _is_final(refusal: OAuthErrorResponse) -> bool:
    return refusal.code in TERMINAL_ERRORS or (
        refusal.status == 401 and refusal.code != "invalid_client"
    )
