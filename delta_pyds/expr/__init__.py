"""SQL predicates as typed, bound trees; no I/O, no Arrow."""
