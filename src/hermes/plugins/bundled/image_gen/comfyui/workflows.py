"""The default workflows: text to image, and image to image."""

from __future__ import annotations

from hermes.codec.values import JsonObject


def drawing(values: JsonObject) -> JsonObject:
    size = {"width": values["width"], "height": values["height"], "batch_size": 1}
    return {
        **_common_nodes(values, denoise=1.0),
        "5": {"class_type": "EmptyLatentImage", "inputs": size},
    }


def changing(values: JsonObject) -> JsonObject:
    return {
        **_common_nodes(values, denoise=0.65),
        "5": {"class_type": "VAEEncode", "inputs": {"pixels": ["10", 0], "vae": ["4", 2]}},
        "10": {"class_type": "LoadImage", "inputs": {"image": values["image"]}},
    }


def _common_nodes(values: JsonObject, *, denoise: float) -> JsonObject:
    """Nodes from the checkpoint (4) and the latent image (5) to the file (9)."""
    return {
        "3": {
            "class_type": "KSampler",
            "inputs": {
                "seed": values["seed"],
                "steps": values["steps"],
                "cfg": 7.0,
                "sampler_name": "euler",
                "scheduler": "normal",
                "denoise": denoise,
                "model": ["4", 0],
                "positive": ["6", 0],
                "negative": ["7", 0],
                "latent_image": ["5", 0],
            },
        },
        "4": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": values["model"]}},
        "6": _text(values["prompt"]),
        "7": _text(values["negative_prompt"]),
        "8": {"class_type": "VAEDecode", "inputs": {"samples": ["3", 0], "vae": ["4", 2]}},
        "9": {
            "class_type": "SaveImage",
            "inputs": {"filename_prefix": "hermes", "images": ["8", 0]},
        },
    }


def _text(words: str) -> JsonObject:
    return {"class_type": "CLIPTextEncode", "inputs": {"text": words, "clip": ["4", 1]}}
