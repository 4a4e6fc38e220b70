"""Plots, and the page of the demo."""
