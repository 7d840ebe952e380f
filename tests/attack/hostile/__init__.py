"""Servers that mislead the client commands of `stag`."""
