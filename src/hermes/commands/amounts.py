"""Formats token counts, durations and money."""

from __future__ import annotations


def format_count(count: int) -> str:
    if count < 1_000:
        return str(count)
    size, unit = (1_000, "K") if count < 999_950 else (1_000_000, "M")
    return f"{count / size:.1f}".removesuffix(".0") + unit


def format_elapsed(seconds: float) -> str:
    """An elapsed time in whole seconds: "7s", "2m 05s" or "1h 03m"."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m {rest:02}s"
    return f"{minutes // 60}h {minutes % 60:02}m"


def format_duration(seconds: float) -> str:
    """A duration, with a decimal for short ones."""
    return f"{seconds:.1f}s" if seconds < 10 else format_elapsed(seconds)


def format_money(dollars: float) -> str:
    """Small amounts keep more digits."""
    return f"${dollars:.2f}" if dollars >= 0.01 or dollars == 0 else f"${dollars:.4f}"
