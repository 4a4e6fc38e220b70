"""Parse, call, print: a file for each command or two, and what they share."""
