"""The limits of the integers, and of what a mechanism file may hold: each stands here once."""

BITS = 62
"""N = 2^62: the largest power of two whose sums and shifts stay inside a signed 64-bit integer."""

LENGTH_BITS = 30
"""From a category of a geometry to its root there are at most 2^30 units."""

LARGEST_INTEGER = 1 << 53
"""Integers that are names stay below this, so that every language reads them as they are."""

MOST_STEPS = 4096
"""The longest pace of a stream."""
PACE = 256
"""θ, the pace of a stream, is a multiple of 1/256."""
PERSISTENCE = 1024
"""The share of persistence in a stream's public law is a multiple of 1/1024."""

LARGEST_BASE = 1 << 16
"""The base of a survey is below this: whether it is a prime is found by division."""
