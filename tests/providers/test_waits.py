from __future__ import annotations

import pytest

from hermes.providers.failure_patterns import retry_after

NOW = 1_750_000_000.0  # 2025-06-15 15:06:40 UTC


@pytest.mark.parametrize(
    ("headers", "text", "seconds"),
    [
        ({"retry-after": "12"}, "", 12.0),
        ({"retry-after": "1.5"}, "", 1.5),
        ({"retry-after-ms": "1500"}, "", 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, "", 0.25),
        ({"retry-after": "Sun, 15 Jun 2025 15:07:10 GMT"}, "", 30.0),
        ({"retry-after": "Sun, 15 Jun 2025 15:06:00 GMT"}, "", 0.0),
        ({"retry-after": "soon"}, "", None),
        ({"x-ratelimit-reset-requests": "6m0s"}, "", 360.0),
        ({"x-ratelimit-reset-tokens": "20ms"}, "", 0.02),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6s"}, "", 6.0),
        (
            {
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "6s",
                "x-ratelimit-remaining-tokens": "5",
            },
            "",
            1.0,
        ),
        ({"anthropic-ratelimit-requests-reset": "2025-06-15T15:06:50Z"}, "", 10.0),
        ({"x-ratelimit-reset": "1750000005"}, "", 5.0),
        ({"x-ratelimit-reset": "1750000005000"}, "", 5.0),
        ({}, "Rate limit reached. Please try again in 20s.", 20.0),
        ({}, "Please try again in 1.5 minutes", 90.0),
        ({}, "try again in 300ms", 0.3),
        ({}, "Please retry after 12 seconds", 12.0),
        ({}, '{"retryDelay": "36s"}', 36.0),
        ({}, "Try again later.", None),
        ({}, "", None),
    ],
)
def test_the_servers_wish_is_read(
    headers: dict[str, str], text: str, seconds: float | None
) -> None:
    assert retry_after(headers, text, now=NOW) == pytest.approx(seconds)
