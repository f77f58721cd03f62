"""Web access of a session: loaded with the first fetch, and absent in a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.delegating import FetchOptions, NoWeb
from hermes.core.effects import FetchUrl
from hermes.core.ports import Fetcher, FetchResponse

if TYPE_CHECKING:
    from typing import Unpack

    from hermes.config.run_context import RunContext
    from hermes.config.settings import NetworkSettings
    from hermes.policy.rules import SessionPolicy


def web_access(run: RunContext, rules: SessionPolicy) -> Fetcher:
    return NoWeb() if run.offline else LazyFetcher(run.settings.network, rules)


class LazyFetcher:
    """A fetcher that is loaded with the first fetch, because most sessions fetch nothing."""

    def __init__(self, network: NetworkSettings, rules: SessionPolicy) -> None:
        self._network = network
        self._rules = rules
        self._fetcher: Fetcher | None = None

    async def fetch(self, effect: FetchUrl, **options: Unpack[FetchOptions]) -> FetchResponse:
        if self._fetcher is None:
            from hermes.web.fetcher import WebFetcher

            self._fetcher = WebFetcher(
                self._rules.urls,
                proxy=self._network.proxy,
                no_proxy=self._network.no_proxy,
                ca_file=self._network.ca_bundle or None,
            )
        return await self._fetcher.fetch(effect, **options)
