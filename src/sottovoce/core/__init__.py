"""All that runs when something is released and all that is proved: integers, and one source of randomness.

There is no float in this folder, and it imports `errors` and numpy's arrays of integers alone: import-linter
and `tests/core/test_integers_only.py` hold both.

    constants     the limits, each written once
    arithmetic    e^ε from below, the exact clip, the integer kernel, and their certificates
    arrays        products and running sums that do not overflow
    randomness    the operating system's bytes as uniform words
    engine        what every engine has: a certificate, a number of words, a draw, a law
    box           one law of a box; box_many: the same for many users, by proof
    kernel        a row of a kernel, or randomized response
    survey        an answer to a random question
    tree          which categories are near each other; nearest_law: the law of a box that moves the least
    nearest       draws from that law
    stream        the state of a stream and its next law; stream_many: the same for many users
"""
