"""Marker lines of message parts that the program added."""

from __future__ import annotations

ATTACHED = "--- Attached Context ---"
WARNINGS = "--- Context Warnings ---"
BLOCK_BEGINS = "[The earlier part of this conversation, shortened by the program."
BLOCK_ENDS = "[End of the shortened part. What follows is newer and wins over it.]"
