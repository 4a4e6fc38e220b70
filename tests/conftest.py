"""Hypothesis repeats the same examples every day; the full run (`make test-full`) draws new ones."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("everyday", deadline=None, derandomize=True)
settings.register_profile("full", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "everyday"))
