from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.workspaces.runner import LiveText, OutputWindow, complete_characters, plain_text


@given(chunks=st.lists(st.binary(max_size=200), max_size=30), size=st.integers(0, 300))
def test_a_window_keeps_what_fits_and_counts_the_rest(chunks: list[bytes], size: int) -> None:
    window = OutputWindow(size)
    for chunk in chunks:
        window.add(chunk)
    whole = b"".join(chunks)
    text = window.text()
    assert window.total_bytes == len(whole)
    if len(whole) <= size * 0.6:
        assert text == plain_text(whole)
    elif "bytes omitted" in text:
        left_out = int(text.split("[... ")[-1].split(" ")[0])
        assert len(whole) - size <= left_out <= len(whole)
    else:
        assert text == plain_text(whole)


def test_memory_stays_bounded() -> None:
    window = OutputWindow(1_000)
    for _ in range(2_000):
        window.add(b"x" * 1_000)
    assert len(window._tail) < 100_000
    assert window.total_bytes == 2_000_000


def test_cuts_are_made_between_lines_and_characters() -> None:
    window = OutputWindow(40)
    window.add(b"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n")
    assert window.text() == "one\ntwo\nthree\n[... 14 bytes omitted ...]\nseven\neight\nnine\nten\n"
    letters = OutputWindow(10)
    letters.add(("ä" * 50).encode())
    assert letters.text() == "ää\n[... 90 bytes omitted ...]\näää"


def test_escape_sequences_of_all_kinds_go() -> None:
    raw = b"\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\x07 \x1b(Bplain\x1b=\r\n"
    assert plain_text(raw) == "red link plain\n"


@given(text=st.text(max_size=40), cut=st.integers(0, 40))
def test_only_whole_characters_are_complete(text: str, cut: int) -> None:
    raw = text.encode("utf-8", "ignore")[:cut]
    whole = complete_characters(raw)
    assert whole == raw.decode("utf-8", "ignore").encode()


@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\r")), step=st.integers(1, 7))
def test_live_text_adds_up(text: str, step: int) -> None:
    shown: list[str] = []
    live = LiveText(shown.append)
    raw = f"\x1b[32m{text.replace(chr(27), '')}\x1b[0m".encode()
    for start in range(0, len(raw), step):
        live.add(raw[start : start + step])
    assert "".join(shown) == text.replace(chr(27), "")
