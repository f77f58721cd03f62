"""The models at fal.ai that are offered: how they take sizes, and which can change pictures."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import JsonObject, Value

Sizes = Literal["presets", "presets_4_3", "ratios", "pixels"]
_SIZES: dict[Sizes, dict[str, JsonObject]] = {
    "presets": {
        "landscape": {"image_size": "landscape_16_9"},
        "square": {"image_size": "square_hd"},
        "portrait": {"image_size": "portrait_16_9"},
    },
    "presets_4_3": {
        "landscape": {"image_size": "landscape_4_3"},
        "square": {"image_size": "square_hd"},
        "portrait": {"image_size": "portrait_4_3"},
    },
    "ratios": {
        "landscape": {"aspect_ratio": "16:9"},
        "square": {"aspect_ratio": "1:1"},
        "portrait": {"aspect_ratio": "9:16"},
    },
    "pixels": {
        "landscape": {"image_size": "1536x1024"},
        "square": {"image_size": "1024x1024"},
        "portrait": {"image_size": "1024x1536"},
    },
}


class FalModel(Value):
    """`edit` is the endpoint that makes a picture from at most `most_sources` others."""

    id: str
    display: str
    speed: str = ""
    strengths: str = ""
    price: str = ""
    sizes: Sizes = "presets"
    edit: str = ""
    most_sources: int = 0
    fixed: JsonObject = {}

    def size(self, aspect: str) -> JsonObject:
        return _SIZES[self.sizes][aspect]

    def row(self) -> JsonObject:
        return {
            "id": self.id,
            "display": self.display,
            "speed": self.speed,
            "strengths": self.strengths,
            "price": self.price,
            "modalities": ["text", "image"] if self.edit else ["text"],
        }


_ALL = (
    FalModel(
        id="fal-ai/flux-2/klein/9b",
        display="FLUX.2 klein 9B",
        speed="about 1 s",
        strengths="fast, clear text",
        price="$0.006/MP",
        edit="fal-ai/flux-2/klein/9b/edit",
        most_sources=4,
    ),
    FalModel(
        id="fal-ai/flux-2-pro",
        display="FLUX.2 pro",
        speed="about 6 s",
        strengths="photographs",
        price="$0.03/MP",
        edit="fal-ai/flux-2-pro/edit",
        most_sources=8,
    ),
    FalModel(
        id="fal-ai/z-image/turbo",
        display="Z-Image turbo",
        speed="about 2 s",
        strengths="English and Chinese text",
        price="$0.005/MP",
    ),
    FalModel(
        id="fal-ai/nano-banana-pro",
        display="Nano Banana Pro",
        speed="about 8 s",
        strengths="reasoning, diagrams, changes of pictures",
        price="$0.15/image",
        sizes="ratios",
        edit="fal-ai/nano-banana-pro/edit",
        most_sources=14,
    ),
    FalModel(
        id="fal-ai/gpt-image-1.5",
        display="GPT Image 1.5",
        speed="about 15 s",
        strengths="follows long descriptions",
        sizes="pixels",
        edit="fal-ai/gpt-image-1.5/edit",
        most_sources=16,
        fixed={"quality": "medium"},
    ),
    FalModel(
        id="fal-ai/gpt-image-2",
        display="GPT Image 2",
        speed="about 20 s",
        strengths="text, many scripts",
        sizes="presets_4_3",
        edit="fal-ai/gpt-image-2/edit",
        most_sources=16,
        fixed={"quality": "medium"},
    ),
    FalModel(
        id="fal-ai/ideogram/v3",
        display="Ideogram v3",
        speed="about 5 s",
        strengths="lettering, posters",
        edit="fal-ai/ideogram/v3/remix",
        most_sources=1,
    ),
    FalModel(
        id="fal-ai/recraft/v4/pro",
        display="Recraft v4 pro",
        speed="about 8 s",
        strengths="design, brands",
        price="$0.25/image",
    ),
    FalModel(
        id="fal-ai/qwen-image",
        display="Qwen Image",
        speed="about 12 s",
        strengths="text in pictures",
        price="$0.02/MP",
        edit="fal-ai/qwen-image-edit",
        most_sources=1,
    ),
)
MODELS = {model.id: model for model in _ALL}
