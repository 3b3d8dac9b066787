"""Syntax to bound trees: names resolved, types settled, constants folded.

- ``predicate_binding``: syntax to a predicate that cannot fail on any row
- ``build``: the parts of predicates, made from syntax or from pushed filters
- ``binding``: syntax to a general expression, which may fail on a row
- ``two_tables``: the same over the columns of two tables, for the expressions of a merge
"""
