"""The settings about pictures: who draws them, with which model, how long and how many at once."""

from __future__ import annotations

from typing import Annotated, Literal

from hermes.codec.values import JsonObject, Value
from hermes.config.kinds import Positive, Seconds


class ImageModelSettings(Value):
    model: Annotated[str, "Which of its models draws; empty takes the first of its list."] = ""


class XaiImageSettings(Value):
    model: Annotated[str, "Which of its models draws; empty takes the first of its list."] = ""
    resolution: Annotated[Literal["1k", "2k"], "How fine the picture is."] = "1k"


class CompatibleImageSettings(Value):
    """A server that speaks the format of OpenAI's images, for example LocalAI."""

    base_url: Annotated[str, "Its address, up to `/v1`; it is used when this is given."] = ""
    model: Annotated[str, "What it calls the model; empty takes `image_gen.model`."] = ""
    size_by_aspect: Annotated[
        dict[str, str], "Sizes by `landscape`, `square`, `portrait`, as `1536x1024`."
    ] = {}
    params: Annotated[JsonObject, "Fields added to each request."] = {}
    timeout: Annotated[Seconds | None, "Seconds for one picture."] = None


class ComfySettings(Value):
    """A ComfyUI server of your own."""

    base_url: Annotated[str, "Its address; it is used when this is given."] = ""
    model: Annotated[str, "File name of the checkpoint; empty takes the server's first."] = ""
    workflow: Annotated[
        str, "A workflow in API format, in which {prompt}, {width}, {height}, {seed} are filled in."
    ] = ""
    negative_prompt: Annotated[str, "What is not wanted in a picture."] = ""
    steps: Annotated[Positive, "Steps of the sampler."] = 20


class WebUiSettings(Value):
    """A Stable Diffusion web UI (AUTOMATIC1111, Forge) that was started with `--api`."""

    base_url: Annotated[str, "Its address; it is used when this is given."] = ""
    model: Annotated[str, "Title of the checkpoint; empty leaves the one that is loaded."] = ""
    negative_prompt: Annotated[str, "What is not wanted in a picture."] = ""
    steps: Annotated[Positive, "Steps of the sampler."] = 20
    params: Annotated[JsonObject, "Fields added to each request, as `sampler_name`."] = {}


class ImageGenSettings(Value):
    """Who draws pictures. Nothing is offered where nobody can."""

    provider: Annotated[str, "Who draws; empty takes the first that has a key."] = ""
    model: Annotated[str, "The model that draws, if the provider has one of this name."] = ""
    timeout: Annotated[Seconds, "Seconds for one picture."] = 300
    max_parallel_requests: Annotated[Positive, "Pictures that are drawn at the same time."] = 4
    cache_days: Annotated[Positive, "Days that pictures are kept in `cache/images`."] = 7
    cache_mb: Annotated[Positive, "Size of all that are kept; the oldest go first."] = 500
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
        dict[str, JsonObject], "The same for providers of plugins: `my-backend: {model: …}`."
    ] = {}
