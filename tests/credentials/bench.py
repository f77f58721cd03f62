"""A store in a folder of its own, with a clock that a test moves by hand."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes.config.home import Home
from hermes.config.provider_settings import CooldownSettings, PoolStrategy
from hermes.core.errors import ProviderError, Reason
from hermes.core.world import World
from hermes.credentials.auth_file import AuthEntry
from hermes.credentials.credential_store import CredentialStore
from hermes.credentials.stored_key import borrowed_key
from hermes.net.http import HttpClient
from tests.credentials.authority import CLIENT

START = 1_750_000_000.0


class HandClock:
    """Sleeping takes no time but moves the clock."""

    def __init__(self) -> None:
        self.passed = 0.0

    def now(self) -> float:
        return START + self.passed

    def monotonic(self) -> float:
        return self.passed

    async def sleep(self, seconds: float) -> None:
        self.passed += seconds
        await asyncio.sleep(0)


class Bench:
    """`keys` are borrowed from variables A, B, C … with values secret-A, secret-B …"""

    def __init__(
        self,
        root: Path,
        *,
        keys: str = "",
        clock: HandClock | None = None,
        strategy: PoolStrategy = "fill_first",
        cooldowns: CooldownSettings | None = None,
        env: Mapping[str, str] | None = None,
        http: HttpClient | None = None,
        provider: str = "p",
        secrets: Sequence[str] = (),
    ) -> None:
        self.home = Home(root)
        self.clock = clock or HandClock()
        self.provider = provider
        values = secrets or [f"secret-{name}" for name in keys]
        borrowed = tuple(
            borrowed_key(provider, f"env:{name}", value)
            for name, value in zip(keys, values, strict=True)
        )
        self.store = CredentialStore(
            self.home,
            world=World(clock=self.clock, chance=random.Random(7)),
            http=http or HttpClient(),
            env=env or {},
            secret=lambda name: CLIENT if name.endswith("_CLIENT_ID") else "",
            borrowed_keys=lambda _name: (borrowed, ""),
            strategies={provider: strategy},
            cooldowns=cooldowns,
        )
        self.pool = self.store.pool(provider)

    async def next_key(self, **more: str) -> str:
        """The label of the key that is picked."""
        return (await self.pool.pick(again=more.get("again", ""))).label

    async def put(self, entry: AuthEntry, provider: str = "") -> None:
        name = provider or self.provider
        await self.store.auth_file.edit(lambda document: document.put(name, entry))


def failed(
    reason: Reason, *, status: int | None = None, retry_after: float | None = None
) -> ProviderError:
    codes: dict[str, int] = {"rate_limit": 429, "billing": 402, "auth": 401}
    return ProviderError(
        "no", reason=reason, status=status or codes.get(reason), retry_after=retry_after
    )


def write_login(home: Home, provider: str, url: str, flow: str, **more: str | float) -> None:
    """A table of oauth.toml that points at an authority."""
    fields: dict[str, str | float] = {
        "flow": flow,
        "device_url": f"{url}/device/code",
        "token_url": f"{url}/token",
        "authorize_url": f"{url}/authorize",
        "revoke_url": f"{url}/revoke",
        "client_id": CLIENT,
        **more,
    }
    home.root.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items())
    with (home.root / "oauth.toml").open("a") as file:
        file.write(f"[{provider}]\n{lines}\n")
