"""Spark SQL expressions as typed, bound trees; no I/O, no Arrow.

Text becomes syntax in ``parser``, syntax becomes a tree in ``binder``, and a tree becomes a condition on files:

- ``parse``: the entry: text and schema to a predicate or to an expression
- ``parser``: text to syntax, by Spark's grammar
- ``binder``: syntax to bound trees
- ``functions``: the functions that expressions may call, with Spark's rules for their types
- ``coercion``: the types that operands are cast to, by Spark's ANSI rules or its legacy rules
- ``types``: names of types, the type that two operands are compared in, and the casts that cannot fail
- ``casts``: casts of constants
- ``ordering``: a comparison with a constant, expressed in the column's own type
- ``logic``: AND, OR and NOT over bound trees, with constants folded
- ``nodes``: the tree itself: typed, bound to the table's columns, picklable
- ``stats_rewrite``: a predicate as a condition on minimum, maximum and null count
"""
