"""Asks several models in parallel and lets an aggregator combine their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hermes.codec.values import JsonObject, Value, replace
from hermes.config.moa_settings import MoaPresetSettings
from hermes.config.provider_settings import FallbackSettings
from hermes.core.errors import HermesError, ProviderError
from hermes.core.messages import Usage, user_says
from hermes.core.ports import Meter
from hermes.core.prompt import Prompt
from hermes.core.world import Clock
from hermes.models.models import Models, ref_of
from hermes.models.side_model import request_reply

CAUSE = "moa"
AGGREGATION = (
    "Several models answered the user's request independently; their answers follow. Write the "
    "best possible answer to the request. Check the answers critically: they may be wrong, and "
    "agreement is no proof. Correct mistakes, keep what is right, and do not mention the other "
    "answers.\n\n{answers}"
)


class ModelAnswer(Value):
    """The answer of one model, or the reason why there is none."""

    model: str
    text: str = ""
    error: str = ""
    usage: Usage = Usage()


class MixtureResult(Value):
    """The combined answer, the answers that it is based on, and the seconds that it took."""

    text: str
    aggregator: ModelAnswer
    references: tuple[ModelAnswer, ...]
    seconds: float

    @property
    def cost_usd(self) -> float:
        return sum(each.usage.cost or 0.0 for each in (*self.references, self.aggregator))

    def to_json(self) -> JsonObject:
        return {
            "success": True,
            "response": self.text,
            "models_used": {
                "reference_models": [each.model for each in self.references if each.text],
                "aggregator_model": self.aggregator.model,
            },
            "failed_models": {each.model: each.error for each in self.references if each.error},
            "processing_time": round(self.seconds, 3),
            "cost_usd": round(self.cost_usd, 6),
        }


class Mixture:
    """Answers questions with the models of one preset. `report` shows a line to the user."""

    def __init__(
        self,
        models: Models,
        preset: MoaPresetSettings,
        meter: Meter,
        clock: Clock,
        report: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._models = models
        self._preset = preset
        self._meter = meter
        self._clock = clock
        self._report = report

    async def answer(self, question: str) -> MixtureResult:
        """Raise ProviderError if too few references answer or the aggregator fails."""
        started = self._clock.monotonic()
        references = await self._ask_references(question)
        answered = [each for each in references if each.text]
        needed = self._preset.min_successful_references
        if len(answered) < needed:
            reasons = "; ".join(f"{each.model}: {each.error}" for each in references if each.error)
            raise ProviderError(
                f"{len(answered)} of {len(references)} models answered, at least {needed} must "
                f"({reasons}).",
                reason="unknown",
            )
        aggregator = await self._aggregate(question, answered)
        return MixtureResult(
            text=aggregator.text,
            aggregator=aggregator,
            references=references,
            seconds=self._clock.monotonic() - started,
        )

    async def _ask_references(self, question: str) -> tuple[ModelAnswer, ...]:
        prompt = Prompt(system="", messages=(user_says(question),))

        async def ask(entry: FallbackSettings) -> ModelAnswer:
            try:
                answer = await self._ask(entry, prompt, self._preset.reference_temperature)
            except HermesError as error:
                self._report(f"{entry.model}: {error}")
                return ModelAnswer(model=entry.model, error=str(error))
            self._report(f"{entry.model} answered.")
            return answer

        return tuple(await asyncio.gather(*map(ask, self._preset.reference_models)))

    async def _aggregate(self, question: str, answers: list[ModelAnswer]) -> ModelAnswer:
        numbered = "\n\n".join(f"[{n}]\n{each.text}" for n, each in enumerate(answers, 1))
        prompt = Prompt(
            system=AGGREGATION.format(answers=numbered), messages=(user_says(question),)
        )
        preset = self._preset
        return await self._ask(preset.aggregator, prompt, preset.aggregator_temperature)

    async def _ask(
        self, entry: FallbackSettings, prompt: Prompt, temperature: float
    ) -> ModelAnswer:
        ref = replace(ref_of(entry), extra_body={"temperature": temperature})
        link = self._models.link(
            ref, self._meter, cause=CAUSE, attempts=self._preset.max_retries + 1
        )
        prompt = replace(prompt, max_tokens=self._preset.max_tokens)
        reply = await request_reply(link, prompt, self._preset.timeout)
        return ModelAnswer(model=link.model, text=reply.message.text.strip(), usage=reply.usage)
