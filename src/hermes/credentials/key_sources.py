"""Collects all keys of one provider from every source, best first."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from hermes.codec.values import replace
from hermes.core.errors import ConfigError
from hermes.credentials.auth_file import KEYRING, AuthDocument, AuthEntry, AuthFile
from hermes.credentials.oauth.logins import Login
from hermes.credentials.other_programs import OtherPrograms
from hermes.credentials.stored_key import StoredKey, drop_duplicates
from hermes.providers.endpoint import LOGIN

log = logging.getLogger(__name__)

SERVICE = "hermes-agent"
# Some keyrings ask a person to unlock them and would otherwise wait for ever.
_SECONDS = 20.0


class Keyring:
    """Secrets by name. `account` separates homes. No method raises: a broken keyring is treated as
    empty."""

    def __init__(self, account: str) -> None:
        self._account = account

    @staticmethod
    def is_installed() -> bool:
        return find_spec("keyring") is not None

    async def get(self, name: str) -> str:
        return await self._call("get_password", name) or ""

    async def put(self, name: str, secret: str) -> bool:
        """Return whether the secret can be read back."""
        await self._call("set_password", name, secret)
        return await self.get(name) == secret

    async def drop(self, name: str) -> None:
        await self._call("delete_password", name)

    async def _call(self, function: str, name: str, *more: str) -> str | None:
        if not self.is_installed():
            return None

        def work() -> str | None:
            library: Any = import_module("keyring")
            found = getattr(library, function)(SERVICE, f"{self._account}/{name}", *more)
            return found if isinstance(found, str) else None

        try:
            async with asyncio.timeout(_SECONDS):
                return await asyncio.to_thread(work)
        except Exception as error:
            # Each backend raises its own kinds of errors.
            log.warning("keyring failed", extra={"function": function, "error": type(error)})
            return None


class KeySources:
    """The keys of one provider from all sources. Logins come first, because they can be refreshed;
    then `borrowed` keys of the environment and the settings; then keys added by hand, which get
    `scope`. A login of another program is used only if there is no other key."""

    def __init__(
        self,
        provider: str,
        *,
        store: AuthFile,
        borrowed: Sequence[StoredKey],
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
        # Secrets read from the keyring so far, by id.
        self._secrets: dict[str, str] = {}
        self._known: tuple[object, tuple[StoredKey, ...]] | None = None

    @property
    def has_other_program(self) -> bool:
        """Another program on this machine may have a login for this provider."""
        return self._others.signature is not None

    async def keys(self) -> tuple[StoredKey, ...]:
        """Return all keys. Raise ConfigError if auth.json is damaged and there is no other key."""
        signature = (self._store.signature, self._others.signature)
        if self._known is None or self._known[0] != signature:
            self._known = (signature, await self._read())
        return self._known[1]

    @property
    def keyring_secrets(self) -> tuple[str, ...]:
        """The secrets read from the keyring so far."""
        return tuple(self._secrets.values())

    def key_of(self, entry: AuthEntry, key: str = "") -> StoredKey:
        """Build a key from an entry; `key` is its secret from the keyring, if any."""
        is_login = entry.auth_type == "oauth"
        return self._apply_login(
            StoredKey(
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

    async def _read(self) -> tuple[StoredKey, ...]:
        try:
            document = await self._store.read()
        except ConfigError as error:
            if not self.borrowed:
                raise
            log.warning("auth.json is ignored", extra={"error": str(error)})
            document = AuthDocument()
        suppressed = document.suppressed_sources(self.provider)
        keys: list[StoredKey] = []
        overrides: dict[str, AuthEntry] = {}
        for entry in document.entries(self.provider):
            if entry.is_borrowed:
                overrides[entry.source] = entry
                continue
            if entry.kept_in != KEYRING:
                keys.append(self.key_of(entry))
                continue
            if entry.id not in self._secrets:
                self._secrets[entry.id] = await self._keyring.get(f"{self.provider}/{entry.id}")
            keys.append(self.key_of(entry, self._secrets[entry.id]))
        for key in self.borrowed:
            if key.source in suppressed:
                continue
            if override := overrides.get(key.source):
                key = replace(key, priority=override.priority, label=override.label or key.label)
            keys.append(self._apply_login(key))
        keys = drop_duplicates(sorted(keys, key=_rank))
        if all(key.dead for key in keys):
            other = await self._others.read_key()
            if other and other.source not in suppressed:
                keys.append(self._apply_login(other))
        return tuple(keys)

    def _apply_login(self, key: StoredKey) -> StoredKey:
        """Add the authentication and headers that the provider's login requires."""
        login = self.login
        if login is None:
            return key
        token = key.renewal_token or key.key
        if login.refused_prefix and token.startswith(login.refused_prefix):
            return replace(key, dead=True, note=f"{login.name} does not accept classic tokens")
        if login.exchange_url and not key.renewal_token:
            key = replace(key, renewal_token=key.key, key="", oauth=True, scope=LOGIN)
        if login.flow == "google" and not key.renewal_token:
            key = replace(key, renewal_token=key.key, key="", oauth=True)
        is_token = login.bearer_prefix and key.key.startswith(login.bearer_prefix)
        if not key.oauth and not is_token:
            return key
        account = {login.account_header: key.account_id} if key.account_id else {}
        headers = {**login.headers, **(account if login.account_header else {})}
        return replace(key, auth=login.auth, headers=headers)


def _rank(key: StoredKey) -> tuple[int, int]:
    if key.own:
        return (key.priority, 0 if key.oauth else 2)
    return (key.priority, 1)
