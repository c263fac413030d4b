"""The chapter on a whole network: its ladder."""
