"""Settings of what a person sees in the terminal, and of slash commands of their own."""

from __future__ import annotations

from typing import Annotated, Literal

from hermes.codec.values import Value
from hermes.config.kinds import Count


class DisplaySettings(Value):
    """What the terminal shows."""

    personality: Annotated[str, "The personality that new sessions begin with."] = ""
    language: Annotated[
        Literal["en", "de", "es", "fr", "ja", "tr", "uk", "zh"],
        "What the chat itself says; models answer in the language they are spoken to.",
    ] = "en"
    streaming: Annotated[bool, "Show an answer while it is being written."] = True
    show_reasoning: Annotated[bool, "Show the model's reasoning."] = False
    show_cost: Annotated[bool, "Show the cost in the status bar."] = False
    tool_progress: Annotated[
        Literal["off", "new", "all", "verbose"],
        "Tool lines: none, when the tool changes, all, or with arguments and results.",
    ] = "all"
    tool_preview_length: Annotated[Count, "Characters of a call's preview; 0 for no limit."] = 0
    turn_completion_explainer: Annotated[bool, "Say why a turn ended without an answer."] = True
    final_response_markdown: Annotated[
        Literal["strip", "render", "raw"], "What becomes of Markdown in answers."
    ] = "strip"
    busy_input_mode: Annotated[
        Literal["interrupt", "queue", "steer"], "What text typed during a turn does."
    ] = "interrupt"
    resume_display: Annotated[
        Literal["full", "minimal", "off"], "How much of a resumed session is shown."
    ] = "full"
    resume_exchanges: Annotated[Count, "Exchanges shown on resume."] = 10
    skin: Annotated[str, "Colours, signs and words: a built-in skin or one of `skins/`."] = (
        "default"
    )
    kaomoji: Annotated[bool, "Faces beside the spinner, where the skin has some."] = True
    inline_diffs: Annotated[bool, "Show what an edit has changed."] = True
    memory_notifications: Annotated[
        Literal["on", "off", "verbose"],
        "Say when something was learned beside a session: in a line, never, or with its text.",
    ] = "on"
    interim_assistant_messages: Annotated[
        bool, "Show what the model says between two tool calls."
    ] = True
    background_process_notifications: Annotated[
        Literal["all", "concise", "off"],
        "News of background processes: a few lines of it, one line, or none.",
    ] = "all"
    file_mutation_verifier: Annotated[
        bool, "Say so when all edits of a turn have failed, whatever the model says."
    ] = True
    timestamps: Annotated[bool, "Show when something was said."] = False
    timestamp_format: Annotated[str, "How times are written, as for `date`."] = "%H:%M"
    bell_on_complete: Annotated[bool, "Ring when a turn ends."] = False
    compact: Annotated[bool, "A short banner, however wide the window is."] = False
    status_bar: Annotated[bool, "Show model, context and time above the input."] = True


class QuickCommand(Value):
    """A slash command of one's own: `exec` runs a command without the model, `alias` stands for
    another slash command."""

    type: Annotated[Literal["exec", "alias"], "What it is."] = "exec"
    command: Annotated[str, "What `exec` runs."] = ""
    target: Annotated[str, "What `alias` stands for, with its arguments."] = ""
