"""Refreshes tokens before they expire, in one process at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hermes.codec.values import Value, replace
from hermes.core.errors import ConfigError
from hermes.core.world import World
from hermes.credentials.entry import DEAD, Entry
from hermes.credentials.held import Held
from hermes.credentials.holdings import Holdings
from hermes.credentials.oauth.grants import discovered, exchanged
from hermes.credentials.oauth.logins import Login
from hermes.credentials.oauth.tokens import TERMINAL, Refusal, Tokens, refresh_tokens
from hermes.credentials.store import Document, Store
from hermes.providers.http import Http

# Another program may have just used the token and be about to write its successor.
_LOOK_AGAIN_SECONDS: Sequence[float] = (0.0, 0.2, 0.5, 1.0)


class Failed(Value):
    """The refresh failed. After a `final` failure the login is dead."""

    text: str
    final: bool = False


class Renewal:
    """Refreshes for one provider. Concurrent requests for the same login share one refresh."""

    def __init__(self, holdings: Holdings, *, store: Store, http: Http, world: World) -> None:
        self._holdings = holdings
        self._store = store
        self._http = http
        self._world = world
        self._made: dict[str, Held] = {}
        self._under_way: dict[str, asyncio.Task[Held | Failed]] = {}

    @property
    def skew_seconds(self) -> float:
        login = self._holdings.login
        return login.skew_seconds if login else 0.0

    def current(self, held: Held) -> Held:
        """The key with the token that this process exchanged for a borrowed one, if any."""
        made = self._made.get(held.id)
        return made if made is not None and made.renewal_token == held.renewal_token else held

    async def renewed(self, held: Held, *, stale: str) -> Held | Failed:
        """The key with a token other than `stale`. A cancelled caller does not cancel the refresh:
        the server invalidates a refresh token on first use."""
        task = self._under_way.get(held.id)
        if task is None:
            task = asyncio.create_task(self._renewed(held, stale))
            self._under_way[held.id] = task
            task.add_done_callback(lambda _: self._under_way.pop(held.id, None))
        return await asyncio.shield(task)

    async def close(self) -> None:
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)

    async def _renewed(self, held: Held, stale: str) -> Held | Failed:
        login = self._holdings.login
        if login is None or not held.renewal_token:
            return Failed(text=held.note or "it cannot be refreshed")
        try:
            login = await discovered(login, http=self._http)
            if held.own:
                return await self._own(held, stale, login)
            return await self._borrowed(held, stale, login)
        except ConfigError as error:
            return Failed(text=str(error))

    async def _borrowed(self, held: Held, stale: str, login: Login) -> Held | Failed:
        known = self.current(held)
        if known.key and known.key != stale:
            return known
        tokens = await self._ask(login, held.renewal_token, held.client_id)
        if isinstance(tokens, Refusal):
            return Failed(text=tokens.words, final=_is_final(tokens))
        self._made[held.id] = fresh = replace(
            held, key=tokens.access_token, expires_at=tokens.expires_at, url=tokens.url or held.url
        )
        return fresh

    async def _own(self, held: Held, stale: str, login: Login) -> Held | Failed:
        async with self._store.lock.held():
            for _ in range(2):
                document = await self._store.read_fresh()
                entry = document.entry(held.provider, held.id)
                if entry is None or entry.is_dead:
                    return Failed(text="it was removed", final=True)
                if entry.access_token != stale and self._is_good(entry):
                    return self._holdings.of_entry(entry)
                tokens = await self._ask(login, entry.refresh_token, entry.client_id)
                # No await between here and the end of the write.
                if isinstance(tokens, Tokens):
                    return self._kept(document, entry, tokens)
                if not _is_final(tokens):
                    return Failed(text=tokens.words)
                if not await self._replaced(entry):
                    return await self._buried(entry, tokens)
                stale = entry.access_token
        return Failed(text="another program keeps refreshing it")

    def _kept(self, document: Document, entry: Entry, tokens: Tokens) -> Held:
        fresh = replace(
            entry,
            access_token=tokens.access_token,
            refresh_token=tokens.refresh_token,
            expires_at=tokens.expires_at,
            account_id=tokens.account_id or entry.account_id,
            base_url=tokens.url or entry.base_url,
        )
        document.put(self._holdings.provider, fresh)
        self._store.write(document)
        return self._holdings.of_entry(fresh)

    async def _replaced(self, entry: Entry) -> bool:
        """Whether another program has stored a new refresh token."""
        for pause in _LOOK_AGAIN_SECONDS:
            await asyncio.sleep(pause)
            now = (await self._store.read_fresh()).entry(self._holdings.provider, entry.id)
            if now is None or now.refresh_token != entry.refresh_token:
                return True
        return False

    async def _buried(self, entry: Entry, refusal: Refusal) -> Failed:
        document = await self._store.read_for_edit()
        now = self._world.clock.now()
        dead = replace(
            entry,
            last_status=DEAD,
            last_status_at=now,
            last_error_reason=refusal.code,
            last_error_message=refusal.words,
        )
        document.put(self._holdings.provider, dead)
        document.forget_dead(now)
        self._store.write(document)
        return Failed(text=refusal.words, final=True)

    async def _ask(self, login: Login, token: str, client_id: str) -> Tokens | Refusal:
        clock = self._world.clock
        if login.exchange_url:
            return await exchanged(login, token, http=self._http, clock=clock)
        endpoint = login.token_endpoint(client_id)
        return await refresh_tokens(endpoint, token, http=self._http, now=clock.now())

    def _is_good(self, entry: Entry) -> bool:
        now = self._world.clock.now()
        return bool(entry.access_token) and (
            entry.expires_at is None or entry.expires_at - now > self.skew_seconds
        )


def _is_final(refusal: Refusal) -> bool:
    return refusal.code in TERMINAL or (refusal.status == 401 and refusal.code != "invalid_client")
