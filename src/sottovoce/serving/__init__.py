"""The collector's server: `sottovoce collect` serves a mechanism file and stores what comes back."""
