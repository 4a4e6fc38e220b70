"""Fuzzing of everything that reads from outside: `make fuzz SECONDS=600`.

A target is a function of bytes. It must accept them, and then what was made of them keeps its promises, or
refuse them with an error of the library; never another exception, ten seconds or a gigabyte.
"""
