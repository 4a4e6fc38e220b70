"""Faults on purpose: small changes of the source, each of which some test must notice."""
