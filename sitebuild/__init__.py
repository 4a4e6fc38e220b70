"""What `make docs` needs beyond mkdocs: pages from the repository's root, and docstrings as Markdown."""
