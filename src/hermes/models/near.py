"""Which names of models come near one that nobody knows."""

from __future__ import annotations

from collections.abc import Iterable

NEAR = 3


def near_names(model: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names that come nearest; what stands before a slash counts less."""
    # Only a slip needs the comparison of words.
    import difflib

    tails = {name.rpartition("/")[2].lower(): name for name in names}
    wanted = model.rpartition("/")[2].lower()
    near = difflib.get_close_matches(wanted, tails, n=NEAR, cutoff=0.4)
    holding = [tail for tail in tails if wanted and wanted in tail]
    return tuple(tails[tail] for tail in dict.fromkeys((*holding[:NEAR], *near)))[:NEAR]
