"""The error of image generation: a kind for code and one sentence for people."""

from __future__ import annotations

from hermes.core.errors import HermesError


class ImageFault(HermesError):
    """`kind` is the `error_type` of the answer: one of `provider.ERROR_TYPES`."""

    def __init__(self, message: str, *, kind: str = "provider_error") -> None:
        super().__init__(message)
        self.kind = kind
