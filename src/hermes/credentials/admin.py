"""Lists, adds and removes keys, and logs in and out."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value, replace
from hermes.core.errors import ConfigError, NotFound, UsageError
from hermes.credentials.auth_file import KEYRING, MANUAL, AuthDocument, AuthEntry, fingerprint_of
from hermes.credentials.credential_store import CredentialStore
from hermes.credentials.key_health import KeyState, KeyStates
from hermes.credentials.oauth.flows import LoginScreen, log_in
from hermes.credentials.oauth.logins import discover_endpoints, revoke_token
from hermes.credentials.stored_key import StoredKey
from hermes.credentials.token_refresh import with_tokens
from hermes.providers.endpoint import is_plausible_key

Status = Literal["ok", "resting", "trying", "expired", "dead"]
_LOGIN_SOURCES = {"device": "device_code", "codex": "device_code", "pkce": "hermes_pkce"}


class AccountRow(Value):
    """One key or login without secrets."""

    provider: str
    index: int
    id: str
    label: str
    type: Literal["api_key", "oauth"]
    source: str
    status: Status
    why: str = ""  # explains the status
    left_seconds: float = 0.0  # the rest of the cooldown
    requests: int = 0
    expires_at: float | None = None
    kept_in: str = ""
    current: bool = False  # this key is used next


class CredentialAdmin:
    """Manages the keys and logins of one provider."""

    def __init__(self, store: CredentialStore, provider: str) -> None:
        self._store = store
        self._provider = provider

    async def rows(self) -> tuple[AccountRow, ...]:
        """Return the rows, numbered from 1, best first."""
        keys = await self._store.key_sources(self._provider).keys()
        entries = (await self._store.auth_file.read()).entries(self._provider)
        stored_in = {entry.id: entry.kept_in for entry in entries}
        health = self._store.key_health(self._provider)
        health.refresh()
        now = self._store.world.clock.now()
        rows: list[AccountRow] = []
        for number, key in enumerate(keys, start=1):
            state = health.state_of(key)
            status, why = _status(key, state, now)
            left_seconds = max(0.0, state.until - now) if status == "resting" else 0.0
            row = AccountRow(
                provider=self._provider,
                index=number,
                id=key.id,
                label=key.label,
                type="oauth" if key.oauth else "api_key",
                source=key.source,
                status=status,
                why=why,
                left_seconds=round(left_seconds, 1),
                requests=state.requests,
                expires_at=key.expires_at,
                kept_in=stored_in.get(key.id, ""),
                current=status == "ok" and not any(row.current for row in rows),
            )
            rows.append(row)
        return tuple(rows)

    async def add_key(self, key: str, *, label: str = "") -> AccountRow:
        """Store a key, in the system keyring if there is one. Adding a borrowed key that was
        removed enables it again."""
        key = key.strip()
        if not is_plausible_key(key):
            raise UsageError(
                "This is not an API key: it is too short, or a placeholder; copy the key again."
            )
        provider, auth_file = self._provider, self._store.auth_file
        sources = self._store.key_sources(provider)
        suppressed = (await auth_file.read()).suppressed_sources(provider)
        removed = [k for k in sources.borrowed if k.key == key and k.source in suppressed]
        if removed:
            source = removed[0].source
            await auth_file.edit(lambda document: document.suppress(provider, source, on=False))
            return await self._row_of(removed[0].id)
        for number, known in enumerate(await sources.keys(), start=1):
            if key in (known.key, known.renewal_token):
                raise UsageError(f"{provider} already has this key as number {number}.")
        entry = self._new_entry(label=label, access_token=key)
        if await self._store.keyring.put(f"{provider}/{entry.id}", key):
            entry = replace(
                entry, access_token="", kept_in=KEYRING, secret_fingerprint=fingerprint_of(key)
            )

        def add(document: AuthDocument) -> None:
            document.forget_dead(self._store.world.clock.now())
            taken = {known.label for known in document.entries(provider)}
            names = (f"key {number}" for number in range(1, len(taken) + 2))
            free = next(name for name in names if name not in taken)
            document.put(provider, replace(entry, label=entry.label or free))

        await auth_file.edit(add)
        return await self._row_of(entry.id)

    async def remove(self, which: str) -> AccountRow:
        """Remove a key by number, id or label. A borrowed key is only ignored from now on."""
        provider, auth_file = self._provider, self._store.auth_file
        row = await self._find(which)
        entry = (await auth_file.read()).entry(provider, row.id)
        if entry is None or entry.is_borrowed:
            await auth_file.edit(lambda document: document.suppress(provider, row.source))
            return row
        if entry.kept_in == KEYRING:
            await self._store.keyring.drop(f"{provider}/{entry.id}")
        await auth_file.edit(lambda document: document.drop(provider, row.id))
        return row

    async def reset(self) -> int:
        """End the cooldowns of the keys; return their number."""
        now = self._store.world.clock.now()

        def change(states: KeyStates) -> int:
            rested = 0
            for name, state in list(states.items()):
                if name.rpartition("/")[0] == self._provider and state.rests:
                    rested += state.in_cooldown(now)
                    states[name] = KeyState(requests=state.requests, used_at=state.used_at)
            return rested

        return await self._store.states.change(change)

    async def log_in(self, screen: LoginScreen, *, label: str = "") -> AccountRow:
        """Log in. Raise NotFound if the provider has no login. The new login replaces a login with
        the same label, or a dead login."""
        provider, store = self._provider, self._store
        login = store.logins.get(provider)
        if login is None:
            raise NotFound(
                f"{provider} has no login; add an API key with `hermes auth add {provider}`.",
                near=store.logins.names(),
            )
        tokens = await log_in(login, screen, http=store.http, clock=store.world.clock)
        source = _LOGIN_SOURCES[login.flow]
        fresh = replace(
            with_tokens(self._new_entry(label=label or login.name), tokens),
            auth_type="oauth",
            source=f"{MANUAL}:{source}" if label else source,
            client_id=login.client_id,
        )

        def put(document: AuthDocument) -> str:
            document.forget_dead(store.world.clock.now())
            entry = fresh
            for known in document.entries(provider):
                if known.auth_type == "oauth" and (known.label == entry.label or known.is_dead):
                    entry = replace(entry, id=known.id, priority=known.priority)
                    break
            document.put(provider, entry)
            document.activate(provider)
            return entry.id

        key_id = await store.auth_file.edit(put)
        await self.reset()
        return await self._row_of(key_id)

    async def log_out(self) -> tuple[AccountRow, ...]:
        """Revoke and remove all logins; `why` of a row is "kept" if its token could not be
        revoked."""
        provider = self._provider
        document = await self._store.auth_file.read()
        gone = []
        for row in await self.rows():
            entry = document.entry(provider, row.id)
            if row.type == "oauth" and entry is not None:
                gone.append(replace(row, why="" if await self._revoke(entry) else "kept"))

        def drop(document: AuthDocument) -> None:
            for row in gone:
                document.drop(provider, row.id)
            if document.active_provider == provider:
                document.activate("")

        await self._store.auth_file.edit(drop)
        return tuple(gone)

    async def _revoke(self, entry: AuthEntry) -> bool:
        login = self._store.logins.get(self._provider)
        if login is None:
            return False
        http = self._store.http
        try:
            login = await discover_endpoints(login, http=http)
        except ConfigError:
            return False
        token = entry.refresh_token or entry.access_token
        return await revoke_token(login, token, client_id=entry.client_id, http=http)

    async def _find(self, which: str) -> AccountRow:
        rows = await self.rows()
        found = [row for row in rows if which in (row.id, str(row.index))]
        found = found or [row for row in rows if which == row.label]
        if len(found) > 1:
            raise UsageError(f"{len(found)} keys are called {which!r}; use the number or the id.")
        if not found:
            listing = f"`hermes auth list {self._provider}` shows them."
            raise NotFound(f"{self._provider} has no key {which!r}; {listing}")
        return found[0]

    async def _row_of(self, key_id: str) -> AccountRow:
        return next(row for row in await self.rows() if row.id == key_id)

    def _new_entry(self, *, label: str, access_token: str = "") -> AuthEntry:
        world = self._store.world
        return AuthEntry(
            id=f"{world.chance.getrandbits(24):06x}",
            label=label,
            access_token=access_token,
            added_at=world.clock.now(),
        )


def _status(key: StoredKey, state: KeyState, now: float) -> tuple[Status, str]:
    if key.dead:
        return "dead", key.note
    if state.in_cooldown(now):
        return "resting", state.rests
    if not key.renewal_token and key.expires_within(0, now):
        return "expired", key.note
    if state.is_being_probed(now):
        return "trying", state.rests
    return "ok", ""
