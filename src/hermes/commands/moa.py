"""The command that asks a mixture of agents."""

from __future__ import annotations

from hermes.commands.formatting import one_line, sanitize
from hermes.commands.registry import CommandContext, Outcome, SlashCommand, StartWork
from hermes.core.errors import HermesError
from hermes.core.messages import AssistantMessage, Text, user_says

NAMED = 40


async def moa(here: CommandContext, argument: str) -> Outcome | str | None:
    if not argument:
        return None
    from hermes.moa.presets import find_preset
    from hermes.moa.service import SessionMixture

    app, session = here.app, here.session
    try:
        find_preset(app.context.settings.moa)
    except HermesError as error:
        return str(error)
    mixture = SessionMixture(app.context, app.models, lambda: session)

    async def work() -> str:
        try:
            result = await mixture.answer(argument)
        except HermesError as error:
            return f"↪ {one_line(argument, 80)}\n{sanitize(str(error))}"
        exchange = (user_says(argument), AssistantMessage(parts=(Text(text=result.text),)))
        # A running turn cannot take in a second exchange; the answer is shown all the same.
        await session.import_messages(() if session.busy else exchange)
        return f"↪ {one_line(argument, 80)}\n{sanitize(result.text)}"

    return StartWork(name=f"models: {one_line(argument, NAMED)}", work=work, is_answer=True)


MOA_COMMANDS = (
    SlashCommand(
        "moa QUESTION",
        "Ask several models, and let one combine what they say (mixture of agents).",
        moa,
    ),
)
