"""What a session's requests ask for besides its words."""

from __future__ import annotations

import pytest

from hermes.config.settings import AgentSettings
from hermes.context.prompting import effort_for


@pytest.mark.parametrize(
    ("model", "effort"),
    [("gpt-6-luna", "high"), ("GPT-6.1-sol", "low"), ("claude-opus-5-5", "medium")],
)
def test_a_model_thinks_as_hard_as_the_longest_part_of_its_name_says(
    model: str, effort: str
) -> None:
    agent = AgentSettings(
        reasoning_effort="medium", reasoning_overrides={"gpt": "high", "gpt-6.1": "low"}
    )
    assert effort_for(agent, model) == effort
