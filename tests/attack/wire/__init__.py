"""Codecs of what the attackers speak. Messages are lists of named fields, so that one field of one layer can be spoiled."""
