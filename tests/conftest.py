"""Hypothesis repeats the same few examples every day; the full run (`make test-full`) draws many new ones."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

settings.register_profile("everyday", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("full", deadline=None, print_blob=True, max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "everyday"))

# A shell starts what runs behind it without SIGINT, and nohup without SIGHUP: the commands under test need both.
for _number, _usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)
