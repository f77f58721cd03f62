"""Checks the whole index file."""

from __future__ import annotations

from itertools import pairwise

from hermes.journal.index.file import IndexDamaged, IndexFile, IndexUnavailable
from hermes.journal.index.segment import Segment


def problems(file: IndexFile) -> list[str]:
    """Each problem as text; empty for a valid file."""
    try:
        with file.reading():
            found = file.problems()
            for info in file.manifest().segments:
                found += _problems_of(Segment(file, info))
    except (IndexDamaged, IndexUnavailable) as error:
        return [f"the search index cannot be read: {error}"]
    return found


def _problems_of(segment: Segment) -> list[str]:
    name = f"segment {segment.info.number} of the search index"
    try:
        ids = segment.ids()
        terms = [term for term, _ in segment.postings()]
    except IndexDamaged as error:
        return [f"{name}: {error}"]
    found = []
    if len(ids) != segment.info.docs:
        found.append(f"{name} has {len(ids)} messages instead of {segment.info.docs}")
    if any(left >= right for left, right in pairwise(ids)):
        found.append(f"{name} has messages out of order")
    if any(left >= right for left, right in pairwise(terms)):
        found.append(f"{name} has terms out of order")
    return found
