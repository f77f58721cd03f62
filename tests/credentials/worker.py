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
from hermes.credentials.held import borrowed
from hermes.credentials.wallet import Source, Wallet
from hermes.providers.direct import Direct
from hermes.providers.endpoint import Endpoint
from hermes.providers.http import Http, Timeouts
from hermes.providers.keys import Credential
from hermes.providers.pooled import Pooled
from hermes.providers.repairs import Fit
from hermes.providers.retrying import Retrying
from tests.credentials.authority import CLIENT
from tests.providers.asking import ask


async def main(settings: dict[str, Any]) -> None:
    http, world = Http(), World()
    keys = tuple(
        borrowed("p", f"env:KEY_{number}", key) for number, key in enumerate(settings["keys"])
    )
    wallet = Wallet(
        Home(Path(settings["home"])),
        world=world,
        http=http,
        env={},
        secret=lambda _name: CLIENT,
        lent=lambda _name: Source(borrowed=keys),
    )
    async with asyncio.TaskGroup() as group:
        for number in range(settings["sessions"]):
            name = f"{settings['name']}-{number}"
            group.create_task(session(name, wallet, http, world, settings))
    await wallet.close()
    await http.aclose()


async def session(
    name: str, wallet: Wallet, http: Http, world: World, settings: dict[str, Any]
) -> None:
    def make(credential: Credential) -> Direct:
        at = Endpoint(
            name="p",
            wire="chat",
            url=f"{settings['url']}/v1",
            model="m",
            headers={"x-session": name},
        )
        at = credential.at(at)
        fit = Fit(at.profile)
        return Direct(at, http=http, clock=world.clock, fit=fit, timeouts=Timeouts())

    # One attempt: a request that would have to wait has failed.
    provider = Retrying(Pooled(wallet.pool("p"), make), world, attempts=1)
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
