"""The entities of the specification as plain values: no I/O, no Arrow, no Spark."""
