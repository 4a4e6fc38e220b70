"""Decide before anything is released: compare, limit, fit, read cards, question a prior."""
