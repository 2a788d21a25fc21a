"""Identification of parameters of machines from recordings, with standard errors."""
