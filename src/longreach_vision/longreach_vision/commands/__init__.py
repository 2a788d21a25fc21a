"""The command ``longreach vision``, its subcommands and figures."""
