"""Settings of the terminal display and of user-defined slash commands."""

from __future__ import annotations

from typing import Annotated, Literal

from hermes.codec.values import Value
from hermes.config.kinds import Count


class DisplaySettings(Value):
    """What the terminal shows."""

    personality: Annotated[str, "Personality of new sessions."] = ""
    language: Annotated[
        Literal["en", "de", "es", "fr", "ja", "tr", "uk", "zh"],
        "Language of the interface; models answer in the language of the prompt.",
    ] = "en"
    streaming: Annotated[bool, "Show an answer while it is generated."] = True
    show_reasoning: Annotated[bool, "Show the model's reasoning."] = False
    show_cost: Annotated[bool, "Show the cost in the status bar."] = False
    tool_progress: Annotated[
        Literal["off", "new", "all", "verbose"],
        "Tool lines: none, only when the tool changes, all, or all with arguments and results.",
    ] = "all"
    tool_preview_length: Annotated[Count, "Characters of a tool call preview; 0 for no limit."] = 0
    turn_completion_explainer: Annotated[bool, "Explain why a turn ended without an answer."] = True
    final_response_markdown: Annotated[
        Literal["strip", "render", "raw"], "How Markdown in answers is shown."
    ] = "strip"
    busy_input_mode: Annotated[
        Literal["interrupt", "queue", "steer"], "What input during a turn does."
    ] = "interrupt"
    resume_display: Annotated[
        Literal["full", "minimal", "off"], "How much of a resumed session is shown."
    ] = "full"
    resume_exchanges: Annotated[Count, "Exchanges shown when a session is resumed."] = 10
    skin: Annotated[str, "Colours, symbols and labels: a built-in skin or one in `skins/`."] = (
        "default"
    )
    kaomoji: Annotated[bool, "Show faces next to the spinner if the skin has them."] = True
    inline_diffs: Annotated[bool, "Show a diff after an edit."] = True
    memory_notifications: Annotated[
        Literal["on", "off", "verbose"],
        "Notices about changed memory and skills: one line, none, or with the text.",
    ] = "on"
    interim_assistant_messages: Annotated[
        bool, "Show text that the model writes between tool calls."
    ] = True
    background_process_notifications: Annotated[
        Literal["all", "concise", "off"],
        "Notices about background processes: some output, one line, or none.",
    ] = "all"
    file_mutation_verifier: Annotated[bool, "Show a notice if all edits of a turn failed."] = True
    timestamps: Annotated[bool, "Show the time of each message."] = False
    timestamp_format: Annotated[str, "Time format, as for `date`."] = "%H:%M"
    bell_on_complete: Annotated[bool, "Ring when a turn ends."] = False
    compact: Annotated[bool, "Use the short banner at any window width."] = False
    status_bar: Annotated[bool, "Show model, context and time above the input."] = True


class QuickCommand(Value):
    """A user-defined slash command: `exec` runs a shell command without the model, `alias` is
    another name for a slash command."""

    type: Annotated[Literal["exec", "alias"], "Kind of command."] = "exec"
    command: Annotated[str, "Shell command for `exec`."] = ""
    target: Annotated[str, "Slash command for `alias`, with its arguments."] = ""
