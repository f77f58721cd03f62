"""The whole interface of `AIAgent`: each argument, method, callback and field that is promised."""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import pytest

from hermes import AIAgent
from hermes.testing.faults import hangs
from hermes.testing.steps import Step, calls, fails, says, thinks
from tests.surfaces.python.programs import Programs

POSITIONAL = (
    "model", "api_key", "base_url", "max_iterations", "enabled_toolsets", "disabled_toolsets",
    "verbose_logging", "quiet_mode", "tool_progress_callback",
)  # fmt: skip
# Argument name: default.
ARGUMENTS: dict[str, Any] = {
    # Model.
    "model": "", "provider": None, "api_mode": None, "base_url": None, "api_key": None,
    "max_tokens": None, "reasoning_config": None, "service_tier": None, "request_overrides": None,
    # Limits. Pauses between calls are off, because they would slow down every turn.
    "max_iterations": 90, "iteration_budget": None, "tool_delay": 0.0,
    # Tools.
    "enabled_toolsets": None, "disabled_toolsets": None,
    # Prompt.
    "ephemeral_system_prompt": None, "prefill_messages": None, "skip_context_files": False,
    "load_soul_identity": False, "skip_memory": False, "pass_session_id": False,
    # Session.
    "session_id": None, "session_db": None, "parent_session_id": None, "platform": None,
    "user_id": None, "user_id_alt": None, "user_name": None, "chat_id": None, "chat_name": None,
    "chat_type": None, "thread_id": None, "gateway_session_key": None,
    # Routing.
    "providers_allowed": None, "providers_ignored": None, "providers_order": None,
    "provider_sort": None, "provider_require_parameters": None, "provider_data_collection": None,
    "fallback_model": None, "credential_pool": None,
    # Output.
    "verbose_logging": False, "quiet_mode": False, "tool_progress_mode": "all", "log_prefix": "",
    "log_prefix_chars": 100, "save_trajectories": False,
    # Safety. None leaves the choice to the settings.
    "checkpoints_enabled": None, "checkpoint_max_snapshots": None,
    "checkpoint_max_total_size_mb": None, "checkpoint_max_file_size_mb": None,
}  # fmt: skip
CALLBACKS = (
    "stream_delta", "interim_assistant", "reasoning", "thinking", "tool_gen", "tool_progress",
    "tool_start", "tool_complete", "step", "status", "clarify", "event", "approval",
    "sudo_password", "secret_capture",
)  # fmt: skip
METHODS = {
    "chat": ("message", "stream_callback"),
    "run_conversation": (
        "user_message", "system_message", "conversation_history", "task_id", "stream_callback",
        "persist_user_message", "persist_user_timestamp",
    ),
    "interrupt": ("message",),
    "clear_interrupt": (),
    "steer": ("text",),
    "switch_model": ("new_runtime",),
    "reset_session_state": (),
    "close": (),
}  # fmt: skip
FIELDS = {
    "final_response", "last_reasoning", "messages", "api_calls", "completed", "failed", "partial",
    "interrupted", "turn_exit_reason", "pending_steer", "model", "provider", "base_url",
    "session_id", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
    "reasoning_tokens", "prompt_tokens", "completion_tokens", "total_tokens", "last_prompt_tokens",
    "estimated_cost_usd", "cost_status", "cost_source", "service_tier", "cleanup_errors",
}  # fmt: skip


def parameters_of(function: Any) -> dict[str, inspect.Parameter]:
    found = dict(inspect.signature(function).parameters)
    found.pop("self", None)
    return found


@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_constructor_has_each_argument_with_its_default(name: str) -> None:
    assert parameters_of(AIAgent.__init__)[name].default == ARGUMENTS[name]


@pytest.mark.parametrize("name", CALLBACKS)
def test_the_constructor_takes_each_callback(name: str) -> None:
    assert parameters_of(AIAgent.__init__)[f"{name}_callback"].default is None


def test_the_first_arguments_may_be_positional() -> None:
    names = parameters_of(AIAgent.__init__).values()
    assert tuple(each.name for each in names if each.kind is each.POSITIONAL_OR_KEYWORD) == (
        POSITIONAL
    )


@pytest.mark.parametrize("name", METHODS)
def test_each_method_takes_its_arguments_in_order(name: str) -> None:
    found = tuple(parameters_of(getattr(AIAgent, name)))
    assert found[: len(METHODS[name])] == METHODS[name]


def test_a_result_has_every_field(programs: Programs) -> None:
    result = programs.agent(says("done")).run_conversation("hi")
    assert set(result) == FIELDS
    assert result["base_url"] == f"{programs.server.url}/v1"
    assert (result["cost_status"], result["cost_source"]) == ("included", "none")


def test_a_failed_result_also_has_the_error(programs: Programs) -> None:
    result = programs.agent(fails(401)).run_conversation("hi")
    assert set(result) == FIELDS | {"error", "failure_reason"}


def test_each_callback_of_a_turn_is_called_as_promised(programs: Programs) -> None:
    seen: dict[str, list[tuple[Any, ...]]] = {name: [] for name in CALLBACKS}

    def record(name: str) -> Any:
        def callback(*values: Any, **named: Any) -> str:
            seen[name].append((*values, *named.items()))
            return "yes"

        return callback

    agent = programs.agent(
        thinks(
            "let me see", then=Step(text="Asking.", calls=calls("clarify", question="Tea?").calls)
        ),
        calls("terminal", command="touch ${PLACE:-.}/x"),
        says("done"),
        **{f"{name}_callback": record(name) for name in CALLBACKS},
    )
    streamed: list[str] = []
    agent.chat("tea?", stream_callback=streamed.append)
    assert "".join(streamed) == "Asking.done"
    assert seen["stream_delta"][-1] == (None,)
    assert seen["interim_assistant"] == [("Asking.",)]
    assert "".join(text for (text,) in seen["reasoning"]) == "let me see"
    assert seen["thinking"][0][0] and seen["thinking"][-1] == ("",)
    assert seen["tool_gen"] == [("clarify",), ("terminal",)]
    assert seen["tool_progress"][:2] == [
        ("reasoning.available", "_thinking", "let me see", None),
        ("tool.started", "clarify", "Tea?", {"question": "Tea?"}),
    ]
    kind, name, *_, duration, is_error, result = seen["tool_progress"][2]
    assert (kind, name, duration[0], is_error[0], result[0]) == (
        *("tool.completed", "clarify", "duration", "is_error", "result"),
    )
    ((call_id, name, arguments), *_) = seen["tool_start"]
    assert (name, arguments) == ("clarify", {"question": "Tea?"})
    assert seen["tool_complete"][0][:3] == (call_id, name, arguments)
    assert [step for step, _ in seen["step"]] == [1, 2, 3]
    assert seen["step"][0][1] == ("prev_tools", [])
    assert set(seen["step"][1][1][1][0]) == {"name", "arguments", "result"}
    assert seen["clarify"] == [("Tea?", None)]
    ((command, why, permanent),) = seen["approval"]
    assert command == "touch ${PLACE:-.}/x" and why and permanent[0] == "allow_permanent"
    assert {type(body) for _, body in seen["event"]} == {dict}
    assert {"turn_started", "reply_added", "turn_ended"} <= {name for name, _ in seen["event"]}


def test_a_failure_is_reported_to_the_status_callback(programs: Programs) -> None:
    seen: list[tuple[str, str]] = []
    agent = programs.agent(fails(401), status_callback=lambda *status: seen.append(status))
    agent.chat("hi")
    assert seen[-1][0] == "warn"
    assert seen[-1][1].startswith("❌")


def test_compaction_is_reported_to_the_event_callback(programs: Programs) -> None:
    seen: list[tuple[str, dict[str, Any]]] = []
    steps = [says(f"answer {n} " + "word " * 3000) for n in range(30)]
    agent = programs.agent(
        *steps, event_callback=lambda name, body: seen.append((name, body)), max_tokens=1000
    )
    programs.write_home("config.yaml", "model:\n  context_length: 12000\n")
    for n in range(8):
        agent.chat(f"question {n} " + "text " * 500)
    bodies = [body for name, body in seen if name == "session:compress"]
    assert bodies
    assert bodies[0] == {
        "old_session_id": agent.session_id,
        "session_id": agent.session_id,
        "in_place": True,
        "compression_count": 1,
    }


def test_a_compaction_can_continue_in_a_child_session(programs: Programs) -> None:
    seen: list[dict[str, Any]] = []
    steps = [says(f"answer {n} " + "word " * 3000) for n in range(30)]
    agent = programs.agent(
        *steps,
        event_callback=lambda name, body: seen.append(body) if name == "session:compress" else None,
        max_tokens=1000,
    )
    settings = "model:\n  context_length: 12000\ncompression:\n  in_place: false\n"
    programs.write_home("config.yaml", settings)
    results = [agent.run_conversation(f"question {n} " + "text " * 500) for n in range(8)]
    assert seen
    first = seen[0]
    assert not first["in_place"]
    assert first["old_session_id"] == results[0]["session_id"] != first["session_id"]
    # Each compaction ends a session, and the next turn runs in its child.
    for before, after in itertools.pairwise(seen):
        assert before["session_id"] == after["old_session_id"]
    assert agent.session_id == seen[-1]["session_id"]
    assert {body["session_id"] for body in seen[:-1]} <= {each["session_id"] for each in results}
    counts = [body["compression_count"] for body in seen]
    assert counts == sorted(set(counts))


def test_an_interrupted_result_has_no_pending_steer(programs: Programs) -> None:
    agent = programs.agent(hangs(), says("back"))
    with programs.running(agent, "wait") as results:
        programs.server.received.wait(1, timeout=60)
        assert agent.steer("too late")
        agent.interrupt()
    assert results[0]["interrupted"]
    assert results[0]["pending_steer"] is None
    assert agent.chat("hello?") == "back"
