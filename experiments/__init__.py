"""Experiments: public API only, each writes a table or a picture that the documents show."""
