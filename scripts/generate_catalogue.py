"""Write src/hermes/providers/model_catalogue.json from vendors.toml and models.toml."""

from __future__ import annotations

from hermes.codec.json import encode
from hermes.providers.model_catalogue import PACKED, parse_catalogue

SOURCES = ("vendors.toml", "models.toml")


def packed() -> bytes:
    text = "\n".join(PACKED.with_name(name).read_text("utf-8") for name in SOURCES)
    return encode(parse_catalogue(text)) + b"\n"


if __name__ == "__main__":
    PACKED.write_bytes(packed())
    print(f"{PACKED}: {PACKED.stat().st_size} bytes")
