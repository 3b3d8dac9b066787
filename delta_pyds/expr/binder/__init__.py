"""Syntax to bound trees: names resolved, types settled, constants folded.

- ``predicate_binding``: syntax to a predicate that has a value on every row
- ``build``: the parts of predicates, made from syntax or from pushed filters
- ``placement``: what a comparison becomes once its constant's place among the column's values is known
- ``binding``: syntax to a general expression, which may fail on a row
- ``two_tables``: the same over the columns of two tables, as the expressions of a merge are
"""
