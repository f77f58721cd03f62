"""What shipped skills run is ordinary work: no question comes up but for their own scripts."""

from __future__ import annotations

import pytest

from hermes.core.effects import Allow, Deny
from tests.policy.decisions import ROOT, decide
from tests.skills.test_bundled_blocks import CASES, blocks
from tests.skills.test_bundled_programs import CASES as OPTIONAL_CASES


def script(name: str) -> str:
    """All blocks, as if the skill lay in the workspace."""
    return "\n".join(blocks(name)).replace("${HERMES_SKILL_DIR}", f"{ROOT}/skill")


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_bundled_skill_asks_for_nothing_unusual(name: str) -> None:
    assert isinstance(decide(script(name)), Allow)


@pytest.mark.parametrize("name", sorted(OPTIONAL_CASES))
def test_nothing_in_an_optional_skill_is_forbidden(name: str) -> None:
    assert not isinstance(decide(script(name)), Deny)
