"""The header of a GGUF file, whole and damaged."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.providers.embedded.model_file import GgufHeader, parse_header, read_header
from tests.providers.embedded.gguf_files import LLAMA, gguf

WHOLE = gguf()


def test_a_header_tells_its_metadata_and_counts_all_numbers(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf(tensors=((3, 5), (7,), ())))
    scalars = {key: value for key, value in LLAMA.items() if not isinstance(value, list)}
    assert read_header(path) == GgufHeader(metadata=scalars, elements=15 + 7 + 1)


@pytest.mark.parametrize("version", [2, 3])
def test_both_versions_in_use_are_read(version: int) -> None:
    assert parse_header(gguf(version=version)).elements == 64 * 33


@given(
    st.dictionaries(
        st.text(min_size=1),
        st.booleans()
        | st.integers(0, 2**64 - 1)
        | st.floats(width=32, allow_nan=False)
        | st.text()
        | st.lists(st.text(), max_size=5)
        | st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=3), max_size=3),
        max_size=6,
    )
)
def test_every_kind_of_value_is_read_or_skipped(metadata: dict[str, object]) -> None:
    metadata.pop("general.alignment", None)
    kept = {key: value for key, value in metadata.items() if not isinstance(value, list)}
    assert parse_header(gguf(metadata)).metadata == kept


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (gguf(version=1), "GGUF version 1 is not supported"),
        (WHOLE[:-300], "the file is incomplete; download it again"),
        (WHOLE[:60], "the header is truncated"),
        (WHOLE[:8], "the header is truncated"),
        (gguf({"a": 1}).replace(b"a\x0a", b"a\x63"), "the header is damaged"),
    ],
)
def test_what_is_wrong_is_said(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{why}$"):
        parse_header(data)


@pytest.mark.parametrize("content", [b"", b"GG", b"hello, this is text"])
def test_other_files_are_told_apart(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not a GGUF file"):
        read_header(path)


@given(st.integers(4, len(WHOLE) - 1), st.binary(min_size=1, max_size=9))
def test_damage_never_leads_to_anything_but_a_value_or_a_reason(at: int, junk: bytes) -> None:
    damaged = WHOLE[:at] + junk + WHOLE[at + len(junk) :]
    try:
        parse_header(damaged)
    except ValueError as error:
        assert str(error)


@given(st.integers(4, len(WHOLE) - 1))
def test_a_file_that_is_cut_off_is_not_taken_for_whole(size: int) -> None:
    if len(WHOLE) - size > 256:
        with pytest.raises(ValueError, match=r"truncated|incomplete"):
            parse_header(WHOLE[:size])
