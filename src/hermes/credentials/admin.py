"""Lists, adds and removes keys, and logs in and out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from hermes.codec.values import Value, replace
from hermes.core.errors import ConfigError, NotFound, UsageError
from hermes.credentials.auth_file import KEYRING, MANUAL, AuthDocument, AuthEntry, fingerprint_of
from hermes.credentials.credential_store import CredentialStore
from hermes.credentials.key_health import KeyState, KeyStates
from hermes.credentials.oauth.client import TokenSet
from hermes.credentials.oauth.flows import LoginScreen, log_in
from hermes.credentials.oauth.logins import discover_endpoints, revoke_token
from hermes.credentials.stored_key import StoredKey
from hermes.providers.endpoint import is_plausible_key

Status = Literal["ok", "resting", "trying", "expired", "dead"]
_LOGIN_SOURCES = {"device": "device_code", "codex": "device_code", "pkce": "hermes_pkce"}


class AccountRow(Value):
    """One key or login without secrets. `left_seconds` is the rest of its cooldown; `why` explains
    its status; `current` marks the key that is used next."""

    provider: str
    index: int
    id: str
    label: str
    type: Literal["api_key", "oauth"]
    source: str
    status: Status
    why: str = ""
    left_seconds: float = 0.0
    requests: int = 0
    expires_at: float | None = None
    kept_in: str = ""
    current: bool = False


class CredentialAdmin:
    def __init__(self, store: CredentialStore) -> None:
        self._store = store

    async def rows(self, provider: str) -> tuple[AccountRow, ...]:
        """Numbered from 1, best first."""
        held = await self._store.key_sources(provider).keys()
        document = await self._store.auth_file.read()
        entries = {entry.id: entry for entry in document.entries(provider)}
        rows = [
            self._row(number, key, entries.get(key.id)) for number, key in enumerate(held, start=1)
        ]
        return tuple(self._mark_current(rows))

    async def add_key(self, provider: str, key: str, *, label: str = "") -> AccountRow:
        """Stores a key, in the system keyring if there is one."""
        key = key.strip()
        if not is_plausible_key(key):
            raise UsageError("This is not an API key: it is too short, or a placeholder.")
        if borrowed := await self._lift_suppression(provider, key):
            return borrowed
        await self._refuse_repeat(provider, key)
        entry = self._new_entry(label=label, access_token=key)
        if await self._store.keyring.put(f"{provider}/{entry.id}", key):
            entry = replace(
                entry, access_token="", kept_in=KEYRING, secret_fingerprint=fingerprint_of(key)
            )
        await self._store.auth_file.edit(
            lambda document: self._add_entry(document, provider, entry)
        )
        return await self._row_of(provider, entry.id)

    async def remove(self, provider: str, which: str) -> AccountRow:
        """Removes a key by number, id or label. A borrowed key is only ignored from now on."""
        row = await self._find(provider, which)
        entry = (await self._store.auth_file.read()).entry(provider, row.id)
        if entry is None or entry.is_borrowed:
            await self._store.auth_file.edit(lambda held: held.suppress(provider, row.source))
            return row
        if entry.kept_in == KEYRING:
            await self._store.keyring.drop(f"{provider}/{entry.id}")
        await self._store.auth_file.edit(lambda held: held.drop(provider, row.id))
        return row

    async def reset(self, provider: str) -> int:
        """Ends the cooldowns of a provider's keys; returns their number."""
        now = self._store.world.clock.now()

        def change(states: KeyStates) -> int:
            rested = 0
            for name, state in list(states.items()):
                if name.rpartition("/")[0] == provider and state.rests:
                    rested += state.in_cooldown(now)
                    states[name] = KeyState(requests=state.requests, used_at=state.used_at)
            return rested

        return await self._store.states.change(change)

    async def log_in(self, provider: str, screen: LoginScreen, *, label: str = "") -> AccountRow:
        """Raises NotFound if the provider has no login."""
        login = self._store.logins.get(provider)
        if login is None:
            raise NotFound(
                f"{provider} has no login; add an API key with `hermes auth add {provider}`.",
                near=self._store.logins.names(),
            )
        wallet = self._store
        tokens = await log_in(login, screen, http=wallet.http, clock=wallet.world.clock)
        source = _LOGIN_SOURCES[login.flow]
        entry = replace(
            self._new_entry(label=label or login.name),
            auth_type="oauth",
            source=f"{MANUAL}:{source}" if label else source,
            client_id=login.client_id,
        )
        entry = _with_tokens(entry, tokens)
        kept = await wallet.auth_file.edit(
            lambda document: self._put_login(document, provider, entry)
        )
        await self.reset(provider)
        return await self._row_of(provider, kept)

    async def log_out(self, provider: str) -> tuple[AccountRow, ...]:
        """Revokes and removes all logins of a provider; `why` of a row is "kept" if its token could
        not be revoked."""
        rows = [row for row in await self.rows(provider) if row.type == "oauth"]
        document = await self._store.auth_file.read()
        gone = []
        for row in rows:
            entry = document.entry(provider, row.id)
            if entry is None:
                continue
            gone.append(replace(row, why="" if await self._revoke(provider, entry) else "kept"))
        await self._store.auth_file.edit(
            lambda held: _drop_entries(held, provider, [row.id for row in gone])
        )
        return tuple(gone)

    async def _revoke(self, provider: str, entry: AuthEntry) -> bool:
        login = self._store.logins.get(provider)
        if login is None:
            return False
        http = self._store.http
        try:
            login = await discover_endpoints(login, http=http)
        except ConfigError:
            return False
        token = entry.refresh_token or entry.access_token
        return await revoke_token(login, token, client_id=entry.client_id, http=http)

    def _row(self, number: int, held: StoredKey, entry: AuthEntry | None) -> AccountRow:
        conditions = self._store.key_health(held.provider)
        conditions.refresh()
        state = conditions.state_of(held)
        now = self._store.world.clock.now()
        status, why = _status(held, state, now)
        return AccountRow(
            provider=held.provider,
            index=number,
            id=held.id,
            label=held.label,
            type="oauth" if held.oauth else "api_key",
            source=held.source,
            status=status,
            why=why,
            left_seconds=round(max(0.0, state.until - now), 1) if status == "resting" else 0.0,
            requests=state.requests,
            expires_at=held.expires_at,
            kept_in=entry.kept_in if entry else "",
        )

    def _mark_current(self, rows: list[AccountRow]) -> list[AccountRow]:
        able = [row for row in rows if row.status == "ok"]
        if not able:
            return rows
        return [replace(row, current=row is able[0]) for row in rows]

    async def _find(self, provider: str, which: str) -> AccountRow:
        rows = await self.rows(provider)
        found = [row for row in rows if which in (row.id, str(row.index))]
        found = found or [row for row in rows if which == row.label]
        if len(found) > 1:
            raise UsageError(f"{len(found)} keys are called {which!r}; use the number or the id.")
        if not found:
            raise NotFound(
                f"{provider} has no key {which!r}; `hermes auth list {provider}` shows them."
            )
        return found[0]

    async def _row_of(self, provider: str, key_id: str) -> AccountRow:
        rows = await self.rows(provider)
        return next(row for row in rows if row.id == key_id)

    async def _lift_suppression(self, provider: str, key: str) -> AccountRow | None:
        """Adding a borrowed key that was removed enables it again."""
        removed = (await self._store.auth_file.read()).suppressed_sources(provider)
        borrowed = self._store.key_sources(provider).borrowed
        held = next((h for h in borrowed if h.key == key and h.source in removed), None)
        if held is None:
            return None
        source = held.source
        await self._store.auth_file.edit(
            lambda document: document.suppress(provider, source, on=False)
        )
        return await self._row_of(provider, held.id)

    async def _refuse_repeat(self, provider: str, key: str) -> None:
        held = await self._store.key_sources(provider).keys()
        for number, known in enumerate(held, start=1):
            if key in (known.key, known.renewal_token):
                raise UsageError(f"{provider} already has this key as number {number}.")

    def _new_entry(self, *, label: str, access_token: str = "") -> AuthEntry:
        world = self._store.world
        return AuthEntry(
            id=f"{world.chance.getrandbits(24):06x}",
            label=label,
            access_token=access_token,
            added_at=world.clock.now(),
        )

    def _add_entry(self, document: AuthDocument, provider: str, entry: AuthEntry) -> None:
        document.forget_dead(self._store.world.clock.now())
        if not entry.label:
            taken = {known.label for known in document.entries(provider)}
            names = (f"key {number}" for number in range(1, len(taken) + 2))
            entry = replace(entry, label=next(name for name in names if name not in taken))
        document.put(provider, entry)

    def _put_login(self, document: AuthDocument, provider: str, entry: AuthEntry) -> str:
        """Replaces the login with the same label, or a dead one; returns its id."""
        document.forget_dead(self._store.world.clock.now())
        for known in document.entries(provider):
            if known.auth_type == "oauth" and (known.label == entry.label or known.is_dead):
                entry = replace(entry, id=known.id, priority=known.priority)
                break
        document.put(provider, entry)
        document.activate(provider)
        return entry.id


def _with_tokens(entry: AuthEntry, tokens: TokenSet) -> AuthEntry:
    return replace(
        entry,
        access_token=tokens.access_token,
        refresh_token=tokens.refresh_token,
        expires_at=tokens.expires_at,
        account_id=tokens.account_id,
        base_url=tokens.url,
    )


def _status(held: StoredKey, state: KeyState, now: float) -> tuple[Status, str]:
    if held.dead:
        return "dead", held.note
    if state.in_cooldown(now):
        return "resting", state.rests
    if not held.renewal_token and held.expires_within(0, now):
        return "expired", held.note
    if state.is_being_probed(now):
        return "trying", state.rests
    return "ok", ""


def _drop_entries(document: AuthDocument, provider: str, ids: Sequence[str]) -> None:
    for key_id in ids:
        document.drop(provider, key_id)
    if document.active_provider == provider:
        document.activate("")
