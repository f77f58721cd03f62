"""The hooks that there are: names that callbacks may be added under."""

from __future__ import annotations

from hermes.codec.values import Value


class Hook(Value):
    """`returns` is what the answer of a callback may do, "" for one that only watches. One that is
    not `fired` belongs to a part of the program that is not there yet."""

    name: str
    when: str
    returns: str = ""
    fired: bool = True


HOOKS: dict[str, Hook] = {
    hook.name: hook
    for hook in (
        Hook(name="on_session_start", when="the first turn of a new session begins"),
        Hook(name="pre_llm_call", when="a turn begins", returns="words beside the person's"),
        Hook(name="pre_api_request", when="a request to a model is about to be made"),
        Hook(name="post_api_request", when="a model has answered"),
        Hook(name="api_request_error", when="a request to a model has failed"),
        Hook(name="pre_tool_call", when="a tool is about to run", returns="block, approve, modify"),
        Hook(name="post_tool_call", when="a call is answered"),
        Hook(name="transform_tool_result", when="a call is answered", returns="another result"),
        Hook(
            name="transform_terminal_output",
            when="a command in the foreground has ended",
            returns="another output",
        ),
        Hook(
            name="transform_llm_output",
            when="the answer of a turn is there",
            returns="another answer",
        ),
        Hook(name="post_llm_call", when="a turn has ended with an answer"),
        Hook(name="on_session_end", when="a turn has ended, whatever way"),
        Hook(name="on_session_finalize", when="a session is over"),
        Hook(name="on_session_reset", when="a session has taken the place of another"),
        Hook(name="on_session_compress", when="a conversation was shortened"),
        Hook(name="pre_approval_request", when="a person is asked to allow something"),
        Hook(name="post_approval_response", when="a person, or time, has answered"),
        Hook(name="subagent_start", when="a child session begins", fired=False),
        Hook(name="subagent_stop", when="a child session has ended", fired=False),
        Hook(name="plan_created", when="a plan was made", fired=False),
        Hook(name="plan_step_start", when="a step of a plan begins", fired=False),
        Hook(name="plan_step_end", when="a step of a plan has ended", fired=False),
        Hook(
            name="pre_gateway_dispatch",
            when="a message has come from a chat",
            returns="skip, rewrite",
            fired=False,
        ),
        Hook(name="pre_cron_run", when="a job is about to run", returns="skip", fired=False),
        Hook(name="post_cron_run", when="a job has run", fired=False),
    )
}
