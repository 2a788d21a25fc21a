"""The nodes, their messages, and requests to them."""
