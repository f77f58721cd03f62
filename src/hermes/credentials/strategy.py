"""Selection strategies for several healthy keys."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from hermes.config.model_settings import PoolStrategy
from hermes.credentials.held import Held


def choose(
    strategy: PoolStrategy,
    keys: Sequence[Held],
    *,
    requests: Callable[[Held], int],
    order: Sequence[str],
    last: str,
    chance: random.Random,
) -> Held:
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
            return _after(last, keys, order)


def _after(last: str, keys: Sequence[Held], order: Sequence[str]) -> Held:
    if last not in order:
        return keys[0]
    start = order.index(last) + 1
    turn = {name: place for place, name in enumerate((*order[start:], *order[:start]))}
    return min(keys, key=lambda key: turn[key.id])
