"""The errors a caller can meet, and what each one asks of them.

    SottovoceError (ValueError)
    ├── ParameterError   an option is out of range: change the option
    ├── PriorError       the public data cannot serve as a prior: fix, smooth or merge it
    ├── UserDataError    a user's data are not a distribution: fix the data (values are never shown)
    ├── TargetError      no sampler meets the target: ask for less, or allow a larger epsilon
    ├── EstimateError    the reports cannot give what is asked: more reports, or another mechanism
    ├── NotLinearError   the operation needs a kernel and this sampler has none: pick another sampler
    ├── TableError       a file or table cannot be read as asked: fix the file or the column names
    ├── CertificateError the integers do not prove what is claimed: nothing can be released
    ├── MechanismFileError  a mechanism file is unreadable, changed, or against the client's policy
    ├── RandomnessError  the operating system gave no randomness: nothing was released
    ├── BudgetError      not enough ε is left: wait for the next epoch, or grant more
    ├── LedgerError      the store of the budget is lost, rolled back or damaged: nothing is released
    └── StoreError       the store of reports is another's, unreadable or gone: nothing is accepted

Messages name the parameter, the condition and, for public inputs, the value. A message about private data
says how many rows are wrong and by how much a sum is off, never which rows and never what they hold.

A message is made of parts: texts, and a `Setting` wherever it names a parameter. In Python they read as
keyword arguments; the command line writes the same parts with its options.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """A parameter that a message names, perhaps with the value to pass.

    >>> str(Setting("epsilon")), str(Setting("unknown", "drop")), str(Setting("force", True))
    ('epsilon', "unknown='drop'", 'force=True')
    """

    parameter: str
    value: object = None

    def __str__(self) -> str:
        return self.parameter if self.value is None else f"{self.parameter}={self.value!r}"


class SottovoceError(ValueError):
    """Base of every error this library raises on purpose; its arguments are the parts of one message."""

    @property
    def parameter(self) -> str | None:
        """The first parameter that the message names as a setting, or None."""
        return next((part.parameter for part in self.args if isinstance(part, Setting)), None)

    def __str__(self) -> str:
        return "".join(map(str, self.args))


class ParameterError(SottovoceError):
    """An option such as epsilon, gamma or weight is out of range."""


class PriorError(SottovoceError):
    """The public data cannot serve as a prior."""


class UserDataError(SottovoceError):
    """Private data are malformed; the message never repeats them."""


class NotLinearError(SottovoceError):
    """The operation needs a linear sampler."""


class TargetError(SottovoceError):
    """No sampler meets what is asked of it; the message says the best that can be had."""


class EstimateError(SottovoceError):
    """The reports cannot give what is asked of them."""


class TableError(SottovoceError):
    """A file or table cannot be read as asked."""


class CertificateError(SottovoceError):
    """Integers that do not certify the privacy they claim."""


class MechanismFileError(SottovoceError):
    """A mechanism file that is unreadable, changed, or refused by the client's policy."""


class RandomnessError(SottovoceError):
    """The operating system gave no or too little randomness; nothing was released."""


class BudgetError(SottovoceError):
    """Not enough ε is left for a release."""


class LedgerError(SottovoceError):
    """The store of the budget is lost, rolled back or damaged."""


class StoreError(SottovoceError):
    """The store of reports belongs to another mechanism, cannot be read or written, or is gone."""
