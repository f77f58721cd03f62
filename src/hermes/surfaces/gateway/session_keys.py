"""Session keys: which messages belong to one conversation."""

from __future__ import annotations

import re

from hermes.surfaces.gateway.platform import Inbound

MAX_PART_CHARS = 256
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f/]")


def session_key(
    event: Inbound,
    *,
    profile: str = "",
    per_user_in_groups: bool = True,
    per_user_in_threads: bool = False,
) -> str:
    """The key of the conversation; "" when an id of the event is not valid."""
    address, sender = event.address, person_id(event)
    parts = [address.chat_id or sender]
    if event.chat_type == "dm":
        parts += [address.thread_id] * bool(address.thread_id)
    elif address.thread_id:
        parts.append(address.thread_id)
        parts += [sender] * per_user_in_threads
    elif event.chat_type == "thread":
        parts += [sender] * per_user_in_threads
    else:
        parts += [sender] * per_user_in_groups
    parts = ["agent", profile or "main", address.platform, event.chat_type, *parts]
    if not all(is_valid_part(part) for part in parts):
        return ""
    # A colon inside an id must not make two conversations equal.
    return ":".join(part.replace("%", "%25").replace(":", "%3A") for part in parts)


def person_id(event: Inbound) -> str:
    """The most stable id of the sender."""
    return event.sender.other_ids[0] if event.sender.other_ids else event.sender.id


def is_valid_part(part: str) -> bool:
    return bool(part) and len(part) <= MAX_PART_CHARS and not _FORBIDDEN.search(part)


def is_shared(event: Inbound, key: str) -> bool:
    """Whether several people write in this conversation."""
    if event.chat_type == "dm":
        return False
    return not key.endswith(":" + person_id(event).replace("%", "%25").replace(":", "%3A"))
