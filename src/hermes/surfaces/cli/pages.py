"""Pages of sections and named lines, for people and for scripts."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.commands.visible import one_line
from hermes.surfaces.cli.output import print_json
from hermes.surfaces.cli.style import styled

LONGEST = 400


def print_page(page: Mapping[str, Mapping[str, str]], *, as_json: bool) -> None:
    """A section without lines says so: somebody who looks for it should not wonder."""
    if as_json:
        print_json(page)
        return
    for number, (section, lines) in enumerate(page.items()):
        print(("\n" if number else "") + styled(section, "bold"))
        width = max(map(len, lines), default=0)
        for name, words in lines.items():
            print(f"  {name:<{width}}  {one_line(words, LONGEST)}".rstrip())
        if not lines:
            print(styled("  none", "dim"))
