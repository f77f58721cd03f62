"""Divides the context window: compaction thresholds and token budgets per part."""

from __future__ import annotations

from hermes.codec.values import Value, replace

_FLOOR = 64_000
_LARGE_WINDOW = 512_000
_SMALL_WINDOW_THRESHOLD = 0.75
_HIGHEST_THRESHOLD = 0.85
_MOST_SUMMARY = 10_000
LEAST_SUMMARY = 300


class CompressionRules(Value):
    """The user's compression settings."""

    enabled: bool = True
    threshold: float = 0.5
    target_ratio: float = 0.2
    protect_last: int = 20
    message_limit: int = 5_000
    abort_on_failure: bool = False


class TokenBudget(Value):
    """Budgets in tokens. A request may have at most `limit`; above `threshold` it is compacted,
    and pruning suffices if it gets below `content`. `tail` is for the newest messages, the rest
    for parts of the block."""

    limit: int
    threshold: int
    content: int
    tail: int
    summary: int
    rules: int
    request: int
    todos: int
    names: int
    files: int


def budget_for(
    window: int, fixed: int, rules: CompressionRules, *, max_tokens: int | None = None
) -> TokenBudget:
    """Computes the budgets for a window of which `fixed` tokens are used in every request."""
    reserve = min(max_tokens, window // 2) if max_tokens else window // 10
    limit = window - reserve
    usable = window - (min(max_tokens, window // 2) if max_tokens else 0)
    share = rules.threshold
    if window < _LARGE_WINDOW:
        share = max(share, _SMALL_WINDOW_THRESHOLD)
    threshold = min(max(int(usable * share), _FLOOR), int(usable * _HIGHEST_THRESHOLD), limit)
    left = max(0, threshold - fixed)
    ratio = max(0.1, min(0.8, rules.target_ratio))
    return TokenBudget(
        limit=limit,
        threshold=threshold,
        content=fixed + left * 55 // 100,
        tail=min(int(threshold * ratio), left * 35 // 100),
        summary=max(LEAST_SUMMARY, min(window // 20, _MOST_SUMMARY)),
        rules=max(200, window // 8),
        request=max(200, window // 8),
        todos=max(100, window // 20),
        names=max(60, min(1_000, window // 40)),
        files=max(100, min(4_000, window // 12)),
    )


def reduce_budget(room: TokenBudget, percent: int) -> TokenBudget:
    """Reduces the budgets of what can be looked up again."""
    if percent == 100:
        return room
    names = ("todos", "names", "files")
    return replace(room, **{name: getattr(room, name) * percent // 100 for name in names})
