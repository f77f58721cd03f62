"""Finds the context window that a local server really uses, and how to raise it."""

from __future__ import annotations

from hermes.codec.values import Value
from hermes.providers.endpoint import Endpoint
from hermes.providers.http import HttpClient
from hermes.providers.servers import detect_server, model_info

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
    """`server` is its kind ("" if unknown). `tokens` is the window in use (None if unknown), `most`
    the model's maximum."""

    server: str
    tokens: int | None = None
    most: int | None = None

    @property
    def label(self) -> str:
        return LABELS.get(self.server, "The server")

    def advice(self, wanted: int = WANTED) -> str:
        """How to get that many tokens, as a clause."""
        form = _RAISE.get(self.server, "raise the context length in its settings")
        return form.format(tokens=wanted)


async def query_window(http: HttpClient, endpoint: Endpoint) -> ServerWindow:
    """What the server reports about itself. Costs a few small requests and no completion. A server
    that does not report its window gets no number."""
    server = endpoint.server or await detect_server(http, endpoint.url, key=endpoint.key)
    info = await model_info(
        http, endpoint.url, endpoint.model, key=endpoint.key, server=server or "none"
    )
    if info is None:
        return ServerWindow(server=server)
    # vLLM lists the window it was started with; others list the model's maximum.
    runs = info.loaded or server == "vllm"
    return ServerWindow(
        server=server, tokens=info.window if runs else None, most=None if runs else info.window
    )
