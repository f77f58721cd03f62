"""Settings of image generation."""

from __future__ import annotations

from typing import Annotated, Literal

from hermes.codec.values import JsonObject, Value
from hermes.config.kinds import Positive, Seconds


class ImageModelSettings(Value):
    model: Annotated[str, "Model; empty uses the first of its list."] = ""


class XaiImageSettings(Value):
    model: Annotated[str, "Model; empty uses the first of its list."] = ""
    resolution: Annotated[Literal["1k", "2k"], "Image resolution."] = "1k"


class CompatibleImageSettings(Value):
    """A server with the OpenAI images API, for example LocalAI."""

    base_url: Annotated[str, "Base URL, up to `/v1`; setting it enables this provider."] = ""
    model: Annotated[str, "Model name; empty uses `image_gen.model`."] = ""
    size_by_aspect: Annotated[
        dict[str, str], "Sizes for `landscape`, `square`, `portrait`, such as `1536x1024`."
    ] = {}
    params: Annotated[JsonObject, "Fields added to each request."] = {}
    timeout: Annotated[Seconds | None, "Timeout of one image, in seconds."] = None


class ComfySettings(Value):
    """A ComfyUI server."""

    base_url: Annotated[str, "Base URL; setting it enables this provider."] = ""
    model: Annotated[str, "Checkpoint file name; empty uses the server's first."] = ""
    workflow: Annotated[
        str, "Workflow in API format; {prompt}, {width}, {height} and {seed} are replaced."
    ] = ""
    negative_prompt: Annotated[str, "Negative prompt."] = ""
    steps: Annotated[Positive, "Sampling steps."] = 20


class WebUiSettings(Value):
    """A Stable Diffusion web UI (AUTOMATIC1111, Forge) started with `--api`."""

    base_url: Annotated[str, "Base URL; setting it enables this provider."] = ""
    model: Annotated[str, "Checkpoint title; empty keeps the loaded one."] = ""
    negative_prompt: Annotated[str, "Negative prompt."] = ""
    steps: Annotated[Positive, "Sampling steps."] = 20
    params: Annotated[JsonObject, "Fields added to each request, such as `sampler_name`."] = {}


class ImageGenSettings(Value):
    """Image generation. The tool is offered only if a provider is configured."""

    provider: Annotated[str, "Provider; empty uses the first that has a key."] = ""
    model: Annotated[str, "Model, if the provider has one of this name."] = ""
    timeout: Annotated[Seconds, "Timeout of one image, in seconds."] = 300
    max_parallel_requests: Annotated[Positive, "Images generated in parallel."] = 4
    cache_days: Annotated[Positive, "Days that images are kept in `cache/images`."] = 7
    cache_mb: Annotated[
        Positive, "Maximum size of `cache/images` in MB; the oldest are deleted first."
    ] = 500
    openai: ImageModelSettings = ImageModelSettings()
    openai_codex: ImageModelSettings = ImageModelSettings()
    xai: XaiImageSettings = XaiImageSettings()
    fal: ImageModelSettings = ImageModelSettings()
    openrouter: ImageModelSettings = ImageModelSettings()
    replicate: ImageModelSettings = ImageModelSettings()
    openai_compatible: CompatibleImageSettings = CompatibleImageSettings()
    comfyui: ComfySettings = ComfySettings()
    sdwebui: WebUiSettings = WebUiSettings()
    options: Annotated[
        dict[str, JsonObject], "Options of plugin providers: `my-backend: {model: …}`."
    ] = {}
