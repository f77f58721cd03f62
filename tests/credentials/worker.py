"""A process with several sessions that all ask one provider: `python -m … SETTINGS`."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from hermes.config.home import Home
from hermes.core.errors import ProviderError
from hermes.core.world import World
from hermes.credentials.credential_store import CredentialStore
from hermes.credentials.stored_key import borrowed_key
from hermes.net.http import HttpClient, Timeouts
from hermes.providers.endpoint import Endpoint
from hermes.providers.keys import Credential, KeyRotatingProvider
from hermes.providers.pipeline import EndpointProvider
from hermes.providers.retry import AdaptiveProfile, RetryingProvider
from tests.credentials.authority import CLIENT
from tests.providers.asking import ask


async def main(settings: dict[str, Any]) -> None:
    http, world = HttpClient(), World()
    keys = tuple(
        borrowed_key("p", f"env:KEY_{number}", key) for number, key in enumerate(settings["keys"])
    )
    store = CredentialStore(
        Home(Path(settings["home"])),
        world=world,
        http=http,
        env={},
        secret=lambda _name: CLIENT,
        borrowed_keys=lambda _name: (keys, ""),
    )
    async with asyncio.TaskGroup() as group:
        for number in range(settings["sessions"]):
            name = f"{settings['name']}-{number}"
            group.create_task(session(name, store, http, world, settings))
    await store.close()
    await http.aclose()


async def session(
    name: str, store: CredentialStore, http: HttpClient, world: World, settings: dict[str, Any]
) -> None:
    def make(credential: Credential) -> EndpointProvider:
        at = Endpoint(
            name="p",
            wire="chat",
            url=f"{settings['url']}/v1",
            model="m",
            headers={"x-session": name},
        )
        at = credential.at(at)
        adaptive = AdaptiveProfile(at.profile)
        return EndpointProvider(
            at, http=http, clock=world.clock, adaptive=adaptive, timeouts=Timeouts()
        )

    # One attempt: a request that would have to wait has failed.
    provider = RetryingProvider(KeyRotatingProvider(store.pool("p"), make), world, attempts=1)
    for _ in range(settings["requests"]):
        try:
            outcome = (await ask(provider)).shown
        except ProviderError as error:
            outcome = f"{error.reason}: {error}"
        sys.stdout.write(json.dumps({"session": name, "outcome": outcome}) + "\n")
        sys.stdout.flush()
        await asyncio.sleep(settings["pause"])


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
