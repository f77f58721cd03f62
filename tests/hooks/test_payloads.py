"""Each hook that is fired carries all the facts that are promised for it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hermes.core.commands import Answer, Compact, End, Say
from hermes.core.events import ApprovalAsked
from hermes.core.session_request import SessionRequest
from hermes.hooks.registry import HOOKS
from hermes.testing.steps import Step, calls, fails, says
from tests.hooks.stage import Told, opened

TURN = ("session_id", "task_id", "turn_id", "platform", "model")
REQUEST = (
    *TURN, "api_request_id", "provider", "base_url", "api_mode", "api_call_count", "message_count",
    "tool_count", "approx_input_tokens", "max_tokens", "started_at",
)  # fmt: skip
CALL = (*TURN, "tool_name", "args", "tool_call_id")
RESULT = (*CALL, "result", "duration_ms", "status", "error_type", "error_message")
APPROVAL = ("command", "description", "pattern_keys", "session_key", "surface")
PAYLOADS: dict[str, tuple[str, ...]] = {
    "on_session_start": ("session_id", "model", "platform"),
    "pre_llm_call": (
        *TURN, "user_message", "conversation_history", "is_first_turn", "sender_id",
    ),
    "pre_api_request": (*REQUEST, "request_messages"),
    "post_api_request": (
        *REQUEST, "api_duration", "finish_reason", "usage", "response_model",
        "assistant_content_chars", "assistant_tool_call_count",
    ),
    "api_request_error": (
        *REQUEST, "status_code", "retry_count", "max_retries", "retryable", "reason", "error",
    ),
    "pre_tool_call": CALL,
    "post_tool_call": RESULT,
    "transform_tool_result": RESULT,
    "transform_terminal_output": ("command", "output", "returncode", "task_id", "env_type"),
    "transform_llm_output": ("response_text", "session_id", "model", "platform"),
    "post_llm_call": (*TURN, "user_message", "assistant_response", "conversation_history"),
    "on_session_end": (*TURN, "completed", "interrupted"),
    "on_session_finalize": (
        "session_id", "platform", "reason", "old_session_id", "new_session_id",
    ),
    "on_session_reset": ("session_id", "old_session_id", "reason", "platform"),
    "on_session_compress": ("session_id", "old_session_id", "tokens_before", "tokens_after"),
    "pre_approval_request": APPROVAL,
    "post_approval_response": (*APPROVAL, "choice"),
}  # fmt: skip
# Of features that are not part of this version: sub-sessions, plans.
UNFIRED = {
    "subagent_start", "subagent_stop", "plan_created", "plan_step_start", "plan_step_end",
}  # fmt: skip
# Fired by a scheduler, not in a session; tests/cron has them.
OF_JOBS = {"pre_cron_run", "post_cron_run"}
# Fired before a message belongs to a session; tests/surfaces/gateway has it.
OF_CHATS = {"pre_gateway_dispatch"}


def test_the_catalogue_has_exactly_these_hooks() -> None:
    assert set(HOOKS) == set(PAYLOADS) | UNFIRED | OF_JOBS | OF_CHATS
    assert {name for name, hook in HOOKS.items() if not hook.fired} == UNFIRED


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What hooks are told in a session in which everything happens."""
    return asyncio.run(_everything(tmp_path_factory.mktemp("hooks")))


async def _everything(root: Path) -> Told:
    told = Told()
    steps: list[Step] = [
        fails(500, retry_after=0.01),
        calls("terminal", command="echo ${WORD:-hi} > ${PLACE:-.}/x"),
        says("Done. " + "word " * 2000),
        *(says("More. " + "word " * 2000) for _ in range(5)),
    ]
    async with opened(root, steps, told.listen, attended=True) as (app, session, _server):
        events = session.subscribe()

        async def approve() -> None:
            async for record in events:
                if isinstance(record.event, ApprovalAsked):
                    await session.send(Answer(id=record.event.id, text="once"))

        answering = asyncio.ensure_future(approve())
        for n in range(4):
            await session.send(Say(text=f"go {n}"))
            await session.wait_until_idle()
        await session.send(Compact())
        await session.send(End(reason="new"))
        other = await app.open(SessionRequest(source="cli", attended=False))
        await app.hooks.reset(session.id, other, "new")
        answering.cancel()
    return told


@pytest.mark.parametrize("hook", PAYLOADS)
def test_a_hook_carries_its_facts(told: Told, hook: str) -> None:
    payloads = told.of(hook)
    assert payloads, f"{hook} was not fired"
    for payload in payloads:
        assert [name for name in PAYLOADS[hook] if name not in payload] == []


def test_the_facts_have_the_promised_values(told: Told) -> None:
    def first(hook: str) -> dict[str, Any]:
        return told.of(hook)[0]

    assert first("pre_api_request")["api_mode"] == "chat_completions"
    assert first("post_approval_response")["choice"] == "once"
    assert first("pre_approval_request")["surface"] == "cli"
    assert first("on_session_reset")["reason"] == "new_session"
    assert first("on_session_finalize")["reason"] == "new_session"
    assert first("post_tool_call")["status"] == "ok"
    assert first("api_request_error")["error"].keys() == {"type", "message"}
