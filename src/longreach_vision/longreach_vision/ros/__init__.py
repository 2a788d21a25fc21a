"""The nodes and their messages."""
