"""Rerunnable measurements: ratios inside one run, since absolute times depend on the machine."""
