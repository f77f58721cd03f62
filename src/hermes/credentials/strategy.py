"""Selection strategies for several healthy keys."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from hermes.config.model_settings import PoolStrategy
from hermes.credentials.held import StoredKey


def choose_key(
    strategy: PoolStrategy,
    keys: Sequence[StoredKey],
    *,
    requests: Callable[[StoredKey], int],
    order: Sequence[str],
    last: str,
    chance: random.Random,
) -> StoredKey:
    """Chooses from `keys`, sorted by priority. `order` has the ids of all keys of the provider;
    `last` is the id of the previous choice."""
    match strategy:
        case "fill_first":
            return keys[0]
        case "least_used":
            return min(keys, key=requests)
        case "random":
            return chance.choice(keys)
        case "round_robin":
            return _next_in_order(last, keys, order)


def _next_in_order(last: str, keys: Sequence[StoredKey], order: Sequence[str]) -> StoredKey:
    if last not in order:
        return keys[0]
    start = order.index(last) + 1
    turn = {name: place for place, name in enumerate((*order[start:], *order[:start]))}
    return min(keys, key=lambda key: turn[key.id])
