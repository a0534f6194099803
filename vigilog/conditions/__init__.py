"""What is done with the changes of views: alerts, triggers, integrity constraints."""

from __future__ import annotations

MOST_ROUNDS = 16  # of triggers that set each other off, unless stated otherwise
