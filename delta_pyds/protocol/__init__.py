"""The specification's nouns as plain values: no I/O, no Arrow, no Spark."""
