"""``longreach plot`` and ``longreach animate``: figures and moving pictures from recordings."""
