"""Turns refusals that the owner of a local server can fix into advice."""

from __future__ import annotations

import re

from hermes.core.errors import ProviderError
from hermes.providers.endpoint import Endpoint

_ADVICE = (
    (
        r"enable-auto-tool-choice|tool-call-parser",
        "vLLM at {host} was started without tool support; restart it with"
        " `--enable-auto-tool-choice --tool-call-parser hermes` (or the model's own parser).",
    ),
    (
        r"--jinja|tools param requires|jinja template.{0,40}tool",
        "llama.cpp at {host} was started without tool support; restart `llama-server` with"
        " `--jinja`.",
    ),
    (
        r"does not support tools|tools? (?:is|are) not supported|tool use is not supported",
        "{model} at {host} does not support tools: choose a model that does (`ollama pull qwen3`),"
        " or use this one without tools.",
    ),
)


def explain_refusal(error: ProviderError, endpoint: Endpoint) -> ProviderError:
    """The same error with better advice if it is a refusal of tools."""
    text = error.body or str(error)
    for words, advice in _ADVICE:
        if error.status is not None and re.search(words, text, re.IGNORECASE):
            return ProviderError(
                advice.format(host=endpoint.host, model=endpoint.model),
                reason="format_error",
                status=error.status,
                body=error.body,
            )
    return error
