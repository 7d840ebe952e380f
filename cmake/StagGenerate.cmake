# Placeholder until xdrgen exists.
