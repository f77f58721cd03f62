"""All exceptions of Hermes.

HermesError                what happened and the next step, in one sentence
├── UsageError             the caller asked for something that cannot be (exit code 2)
├── NotFound               no such session, key, file; `near` holds close names
│   └── RunNotFound        no such run
├── AdmissionRefused       a long-lived process does not take another run now
├── IdempotencyConflict    the idempotency key belongs to another request
├── ConfigError            a setting cannot be used
│   └── InvalidConfig      nothing starts with these settings (exit code 2)
├── JournalError           the journal cannot do it
│   ├── SessionBusy        another process owns the session
│   ├── Fenced             this process owned the session and lost it
│   └── DiskFull           nothing was written
├── ProviderError          a model call failed; `reason` is one of REASONS
├── PlatformError          a messaging platform did not do what was asked
│   ├── PlatformUnreachable  the request certainly had no effect; it may succeed later
│   ├── PostUncertain      nobody knows whether the message was sent
│   ├── PostRejected       the platform refuses this content; plain text may pass
│   ├── TargetGone         the chat or message does not exist or blocks us
│   └── LoginRejected      the credentials are wrong; trying again does not help
├── BudgetReached          a spending cap does not allow the next model call
├── ContextFull            the conversation cannot be made to fit the model's window
└── ToolError              meant for the model: a text that helps it to continue
    └── EffectDenied       the policy or a person said no
"""

from __future__ import annotations

import errno
import re
from typing import Literal


class HermesError(Exception):
    pass


class UsageError(HermesError):
    pass


class NotFound(HermesError):
    def __init__(self, message: str, near: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.near = near


class RunNotFound(NotFound):
    pass


class AdmissionRefused(HermesError):
    """There is no capacity for a run. `retry_after` is a delay in seconds. `is_draining` means that
    the process is stopping."""

    def __init__(self, message: str, *, retry_after: float, is_draining: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.is_draining = is_draining


class IdempotencyConflict(HermesError):
    pass


class ConfigError(HermesError):
    pass


class InvalidConfig(ConfigError):
    pass


class JournalError(HermesError):
    pass


class SessionBusy(JournalError):
    pass


class Fenced(JournalError):
    pass


class DiskFull(JournalError):
    pass


Reason = Literal[
    "auth", "auth_permanent", "billing", "rate_limit", "upstream_rate_limit", "overloaded",
    "server_error", "timeout", "ssl_cert_verification", "context_overflow", "payload_too_large",
    "image_too_large", "model_not_found", "provider_policy_blocked", "content_policy_blocked",
    "format_error", "endless_reply", "cut", "unknown",
]  # fmt: skip


class ProviderError(HermesError):
    """A model request failed."""

    def __init__(
        self,
        message: str,
        *,
        reason: Reason = "unknown",
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        limit: int | None = None,
        body: str = "",
        unsent: bool = False,
        begun: bool = False,
    ) -> None:
        super().__init__(message)
        self.reason: Reason = reason
        self.status = status
        # The same request with the same key may succeed later.
        self.retryable = retryable
        # The delay in seconds that the server asked for.
        self.retry_after = retry_after
        # A context window learned from the error.
        self.limit = limit
        self.body = body
        # The request certainly never left.
        self.unsent = unsent
        # The server accepted the request before it failed. In this case and when `unsent`, `status`
        # does not tell what the request cost.
        self.begun = begun


class PlatformError(HermesError):
    """A request to a messaging platform failed. `retry_after` is the delay in seconds that the
    platform asked for."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class PlatformUnreachable(PlatformError):
    pass


class PostUncertain(PlatformError):
    pass


class PostRejected(PlatformError):
    pass


class TargetGone(PlatformError):
    pass


class LoginRejected(PlatformError):
    pass


class BudgetReached(HermesError):
    """A model request would exceed a spending cap. `scope` and `key` identify the cap; amounts are
    in `unit`."""

    def __init__(
        self,
        message: str,
        *,
        scope: Literal["day", "month", "person", "job", "task"],
        key: str,
        unit: Literal["usd", "tokens"],
        cap: float,
        spent: float,
        asked: float,
        pending: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.scope: Literal["day", "month", "person", "job", "task"] = scope
        self.key = key
        self.unit: Literal["usd", "tokens"] = unit
        self.cap = cap
        self.spent = spent
        self.asked = asked
        # The part of `spent` that is only reserved, for calls that have not ended.
        self.pending = pending

    @property
    def is_passing(self) -> bool:
        """Whether the call would fit if the calls in progress cost little."""
        return self.pending > 0 and self.spent - self.pending + self.asked <= self.cap


class ContextFull(HermesError):
    pass


class ToolError(HermesError):
    """`transient` means that the same call may succeed later."""

    def __init__(self, message: str = "", *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class EffectDenied(ToolError):
    def __init__(
        self,
        message: str,
        by: Literal["policy", "person", "unattended", "timeout"] = "policy",
    ) -> None:
        super().__init__(message)
        self.by: Literal["policy", "person", "unattended", "timeout"] = by


# The messages of the dynamic linker.
_UNMAPPED = r"failed to map segment|cannot allocate memory"
_SHORTAGES = {
    errno.ENOSPC: "There is no space left on the disk; free some space and try again.",
    errno.EDQUOT: "The disk quota is used up; free some space and try again.",
    errno.EMFILE: "Too many files are open; close some programs, or raise `ulimit -n`.",
    errno.ENFILE: "Too many files are open on this machine; close some programs and try again.",
    errno.ENOMEM: "There is not enough memory; close some programs, or raise `ulimit -v`.",
    errno.EAGAIN: "No further process or thread can be started; close some programs, or "
    "raise `ulimit -u` or `ulimit -v`.",
}


def describe_shortage(error: BaseException) -> str:
    """Return a sentence for the person if this machine lacks memory, threads, files or space, ""
    for any other error."""
    if isinstance(error, MemoryError):
        return _SHORTAGES[errno.ENOMEM]
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return _SHORTAGES[errno.EAGAIN]
    if isinstance(error, OSError):
        return _SHORTAGES.get(error.errno or 0, "")
    # A library that cannot be mapped into memory.
    if isinstance(error, ImportError) and re.search(_UNMAPPED, str(error), re.IGNORECASE):
        return _SHORTAGES[errno.ENOMEM]
    return ""
