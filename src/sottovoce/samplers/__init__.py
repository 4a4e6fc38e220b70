"""Which law a user gets, in doubles."""
