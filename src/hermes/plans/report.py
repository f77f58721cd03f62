"""What `hermes plan --json` prints."""

from __future__ import annotations

import msgspec

from hermes.codec.json import convert
from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.plans.model import Plan, PlanState, PlanStatus, StepState


class PlanReport(Value, omit_defaults=False):
    """A plan and the state of its steps. `docs/reference/plan.schema.json` is its JSON Schema."""

    plan_id: str
    session_id: str
    status: PlanStatus
    plan: Plan
    # By the id of the step; a step that did not begin is absent.
    steps: dict[str, StepState]
    answer: str = ""

    @classmethod
    def of(cls, state: JsonValue, *, session_id: str, answer: str) -> PlanReport:
        """Make a report of the state in a result of the tool `plan`."""
        found: PlanState = convert(PlanState, state)
        return cls(
            plan_id=found.plan.plan_id,
            session_id=session_id,
            status=found.status,
            plan=found.plan,
            steps=found.states,
            answer=answer,
        )


def report_schema() -> JsonObject:
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **msgspec.json.schema(PlanReport)}
