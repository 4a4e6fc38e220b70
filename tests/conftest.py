"""Hypothesis repeats the same few examples every day; the full run (`make test-full`) draws many new ones."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

settings.register_profile("everyday", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("full", deadline=None, print_blob=True, max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "everyday"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts what runs behind it like this
    signal.signal(signal.SIGINT, signal.default_int_handler)
