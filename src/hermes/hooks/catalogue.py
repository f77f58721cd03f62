"""The catalogue of hook names."""

from __future__ import annotations

from hermes.codec.values import Value


class Hook(Value):
    """`returns` says what a return value may do, "" for observers. `fired` is False while the
    feature is not implemented."""

    name: str
    when: str
    returns: str = ""
    fired: bool = True


HOOKS: dict[str, Hook] = {
    hook.name: hook
    for hook in (
        Hook(name="on_session_start", when="the first turn of a new session begins"),
        Hook(name="pre_llm_call", when="a turn begins", returns="context for the model"),
        Hook(name="pre_api_request", when="a request to a model is about to be made"),
        Hook(name="post_api_request", when="a model has replied"),
        Hook(name="api_request_error", when="a request to a model has failed"),
        Hook(name="pre_tool_call", when="a tool is about to run", returns="block, approve, modify"),
        Hook(name="post_tool_call", when="a tool call has finished"),
        Hook(
            name="transform_tool_result", when="a tool call has finished", returns="another result"
        ),
        Hook(
            name="transform_terminal_output",
            when="a foreground command has ended",
            returns="another output",
        ),
        Hook(
            name="transform_llm_output",
            when="the final answer of a turn is ready",
            returns="another answer",
        ),
        Hook(name="post_llm_call", when="a turn has ended with an answer"),
        Hook(name="on_session_end", when="a turn has ended for any reason"),
        Hook(name="on_session_finalize", when="a session is over"),
        Hook(name="on_session_reset", when="a session has replaced another"),
        Hook(name="on_session_compress", when="a conversation was compacted"),
        Hook(name="pre_approval_request", when="a person is asked for approval"),
        Hook(name="post_approval_response", when="an approval was answered or timed out"),
        Hook(name="subagent_start", when="a child session begins", fired=False),
        Hook(name="subagent_stop", when="a child session has ended", fired=False),
        Hook(name="plan_created", when="a plan was created", fired=False),
        Hook(name="plan_step_start", when="a step of a plan begins", fired=False),
        Hook(name="plan_step_end", when="a step of a plan has ended", fired=False),
        Hook(
            name="pre_gateway_dispatch",
            when="a chat message has arrived",
            returns="skip, rewrite",
            fired=False,
        ),
        Hook(name="pre_cron_run", when="a job is about to run", returns="skip", fired=False),
        Hook(name="post_cron_run", when="a job has run", fired=False),
    )
}
