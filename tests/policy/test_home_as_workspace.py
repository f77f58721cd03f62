"""The person's own files stay protected when the workspace is the whole home."""

from __future__ import annotations

import pytest

from hermes.core.effects import Allow, Ask, Deny
from tests.policy.decisions import command, decide, rules


@pytest.mark.parametrize("script", ["rm -f ~/thesis.tex", "truncate -s 0 $HOME/journal.txt"])
def test_what_is_spelled_from_the_home_is_the_persons_even_where_all_of_it_is_open(
    script: str,
) -> None:
    by = rules(root="/home/person", home="/home/person")
    assert isinstance(decide(command(script, "/home/person"), by), Ask)
    assert isinstance(decide(command("rm -f draft.tex", "/home/person"), by), Allow)


@pytest.mark.parametrize("script", ['rm -rf "$HOME/.."', "cd; rm -rf ..", "rm -rf ~/../*"])
def test_what_the_home_lies_in_is_never_deleted(script: str) -> None:
    for home in ("/tmp/people/home", "/data/homes/person", "/home/person"):
        by = rules(root="/srv/work", home=home)
        decision = decide(command(script, "/srv/work"), by)
        assert isinstance(decision, Deny)
        assert decision.hardline
