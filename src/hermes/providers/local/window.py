"""The window that a server of one's own really uses, and how its owner makes it larger."""

from __future__ import annotations

from hermes.codec.values import Value
from hermes.providers.endpoint import Endpoint
from hermes.providers.http import Http
from hermes.providers.servers import detect, model_info

LABELS = {
    "ollama": "Ollama",
    "llamacpp": "llama.cpp",
    "lmstudio": "LM Studio",
    "vllm": "vLLM",
}
_RAISE = {
    "ollama": "set `model.ollama_num_ctx`, or start it with OLLAMA_CONTEXT_LENGTH={tokens}",
    "llamacpp": "start llama-server with `-c {tokens}` (it is divided by `--parallel`)",
    "lmstudio": "load the model with a context length of {tokens}",
    "vllm": "start it with `--max-model-len {tokens}`",
}
WANTED = 32_768


class ServerWindow(Value):
    """`server` is its kind, "" when it does not tell. `tokens` is the window in use, None when that
    is not known; `most` what the model could do."""

    server: str
    tokens: int | None = None
    most: int | None = None

    @property
    def label(self) -> str:
        return LABELS.get(self.server, "The server")

    def advice(self, wanted: int = WANTED) -> str:
        """How to get so many tokens, as half a sentence."""
        form = _RAISE.get(self.server, "raise the context length in its settings")
        return form.format(tokens=wanted)


async def canary(http: Http, endpoint: Endpoint) -> ServerWindow:
    """What the server says about itself now; costs a few small requests and no answer of a model.
    A server that is silent about its window gets no number here: only use shows it."""
    server = endpoint.server or await detect(http, endpoint.url, key=endpoint.key)
    info = await model_info(
        http, endpoint.url, endpoint.model, key=endpoint.key, server=server or "none"
    )
    if info is None:
        return ServerWindow(server=server)
    # What vLLM lists is what it was started with; others list what a model was trained for.
    runs = info.loaded or server == "vllm"
    return ServerWindow(
        server=server, tokens=info.window if runs else None, most=None if runs else info.window
    )
