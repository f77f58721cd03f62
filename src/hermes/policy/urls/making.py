"""Puts the guard of addresses together as the settings want it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.policy.urls.blocklist import SharedBlocklist
from hermes.policy.urls.judging import Urls
from hermes.policy.urls.resolver import Resolver, SystemResolver

if TYPE_CHECKING:
    from hermes.policy.rules import Blocked


def make_urls(
    resolver: Resolver | None, private: bool, blocked: Blocked, now: Callable[[], float]
) -> Urls:
    files = [Path(each).expanduser() for each in blocked.files]
    blocks = SharedBlocklist(blocked.domains, files, now)
    return Urls(resolver or SystemResolver(), allow_private=private, blocks=blocks)
