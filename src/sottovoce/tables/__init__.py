"""Any dataframe or file becomes a tally, and a tally priors and users."""
