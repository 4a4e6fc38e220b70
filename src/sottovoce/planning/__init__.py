"""Decide before anything is released: compare, tune, read cards, question a prior."""
