"""What a text costs a model: counted by a tokenizer of others, not estimated."""

from __future__ import annotations

import warnings


def tokens_in(text: str) -> int:
    with warnings.catch_warnings():
        # It opens its data in an old way.
        warnings.simplefilter("ignore", DeprecationWarning)
        import bpe_openai

        return len(bpe_openai.get_encoding("o200k_base").encode(text))
