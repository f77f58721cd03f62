"""Writes GGUF files: a header as the format wants it, and as many bytes of tensors as needed."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

LLAMA: dict[str, Any] = {
    "general.architecture": "llama",
    "general.name": "Tiny",
    "general.license": "mit",
    "llama.context_length": 8192,
    "llama.block_count": 2,
    "llama.embedding_length": 64,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "tokenizer.ggml.tokens": ["<s>", "a", "ß"],
    "tokenizer.ggml.scores": [0.0, 0.5],
    "tokenizer.chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}",
}


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def entry(value: Any) -> bytes:
    """A type number and a value."""
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<IQ", 10, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    assert isinstance(value, list)
    kind = entry(value[0])[:4] if value else struct.pack("<I", 4)
    items = b"".join(entry(item)[4:] for item in value)
    return struct.pack("<I", 9) + kind + struct.pack("<Q", len(value)) + items


def gguf(
    metadata: dict[str, Any] | None = None,
    tensors: tuple[tuple[int, ...], ...] = ((64, 32), (64,)),
    *,
    version: int = 3,
) -> bytes:
    known = LLAMA if metadata is None else metadata
    made = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(known))
    made += b"".join(text(key) + entry(value) for key, value in known.items())
    offset = 0
    for number, shape in enumerate(tensors):
        made += text(f"t{number}") + struct.pack("<I", len(shape))
        made += b"".join(struct.pack("<Q", size) for size in shape)
        made += struct.pack("<IQ", 0, offset)
        offset += 256
    made += b"\0" * (-len(made) % 32)
    return made + b"\0" * offset


def write_model(path: Path, *, parameters: int, **more: Any) -> Path:
    """A file that says it is a model of this size."""
    metadata = {**LLAMA, "general.parameter_count": parameters}
    metadata |= {key.replace("__", "."): value for key, value in more.items()}
    path.write_bytes(gguf(metadata))
    return path
