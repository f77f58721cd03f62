"""Collects all keys of one provider from every source, best first."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from hermes.codec.values import replace
from hermes.core.errors import ConfigError
from hermes.credentials.entry import KEYRING, Entry
from hermes.credentials.foreign import OtherPrograms
from hermes.credentials.held import Held, without_repeats
from hermes.credentials.keyring import Keyring
from hermes.credentials.oauth.logins import Login
from hermes.credentials.store import Document, Store
from hermes.providers.scope import LOGIN

log = logging.getLogger(__name__)


class Holdings:
    """`borrowed` are keys of the environment and the settings. Logins come first, because they can
    be refreshed; then borrowed keys; then keys added by hand, which get `scope`. A login of
    another program is used only if there is no other key."""

    def __init__(
        self,
        provider: str,
        *,
        store: Store,
        borrowed: Sequence[Held],
        others: OtherPrograms,
        login: Login | None,
        keyring: Keyring,
        scope: str = "",
    ) -> None:
        self.provider = provider
        self.login = login
        self._store = store
        self.borrowed = tuple(borrowed)
        self._others = others
        self._keyring = keyring
        self._scope = scope
        self._secrets: dict[str, str] = {}
        self._known: tuple[object, tuple[Held, ...]] | None = None

    @property
    def has_other_program(self) -> bool:
        """Another program on this machine may have a login for this provider."""
        return self._others.signature is not None

    async def now(self) -> tuple[Held, ...]:
        """Raises ConfigError if auth.json is damaged and there is no other key."""
        signature = (self._store.signature, self._others.signature)
        if self._known is None or self._known[0] != signature:
            self._known = (signature, await self._read())
        return self._known[1]

    def keyring_secrets(self) -> tuple[str, ...]:
        """The secrets read from the keyring so far."""
        return tuple(self._secrets.values())

    def of_entry(self, entry: Entry, key: str = "") -> Held:
        """Builds a key from an entry; `key` is its secret from the keyring, if any."""
        is_login = entry.auth_type == "oauth"
        return self._dressed(
            Held(
                id=entry.id,
                provider=self.provider,
                source=entry.source,
                key=key or entry.access_token,
                renewal_token=entry.refresh_token,
                label=entry.label,
                own=True,
                oauth=is_login,
                priority=entry.priority,
                expires_at=entry.expires_at,
                url=entry.base_url,
                client_id=entry.client_id,
                account_id=entry.account_id,
                scope=LOGIN if is_login else self._scope,
                dead=entry.is_dead,
                note=entry.last_error_message,
            )
        )

    async def _read(self) -> tuple[Held, ...]:
        document = await self._document()
        entries = [entry for entry in document.entries(self.provider) if not entry.is_borrowed]
        own = [await self._own(entry) for entry in entries]
        found = without_repeats(sorted((*own, *self._usable_borrowed(document)), key=_rank))
        if not any(not held.dead for held in found):
            other = await self._others.held()
            if other and other.source not in document.suppressed(self.provider):
                found.append(self._dressed(other))
        return tuple(found)

    async def _document(self) -> Document:
        try:
            return await self._store.read()
        except ConfigError as error:
            if not self.borrowed:
                raise
            log.warning("auth.json is ignored", extra={"error": str(error)})
            return Document()

    async def _own(self, entry: Entry) -> Held:
        if entry.kept_in != KEYRING:
            return self.of_entry(entry)
        if entry.id not in self._secrets:
            self._secrets[entry.id] = await self._keyring.get(f"{self.provider}/{entry.id}")
        return self.of_entry(entry, self._secrets[entry.id])

    def _usable_borrowed(self, document: Document) -> list[Held]:
        """Entries override label and priority of a borrowed key."""
        overrides = {e.source: e for e in document.entries(self.provider) if e.is_borrowed}
        suppressed = document.suppressed(self.provider)
        found: list[Held] = []
        for held in self.borrowed:
            if held.source in suppressed:
                continue
            if entry := overrides.get(held.source):
                held = replace(held, priority=entry.priority, label=entry.label or held.label)
            found.append(self._dressed(held))
        return found

    def _dressed(self, held: Held) -> Held:
        """Adds the authentication and headers that the provider's login requires."""
        login = self.login
        if login is None:
            return held
        token = held.renewal_token or held.key
        if login.refused_prefix and token.startswith(login.refused_prefix):
            return replace(held, dead=True, note=f"{login.name} does not accept classic tokens")
        if login.exchange_url and not held.renewal_token:
            held = replace(held, renewal_token=held.key, key="", oauth=True, scope=LOGIN)
        is_token = login.bearer_prefix and held.key.startswith(login.bearer_prefix)
        if not held.oauth and not is_token:
            return held
        account = {login.account_header: held.account_id} if held.account_id else {}
        headers = {**login.headers, **(account if login.account_header else {})}
        return replace(held, auth=login.auth, headers=headers)


def _rank(held: Held) -> tuple[int, int]:
    if held.own:
        return (held.priority, 0 if held.oauth else 2)
    return (held.priority, 1)
