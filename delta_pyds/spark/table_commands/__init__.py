"""What a command does to a table: the layer below ``DeltaTable``, SQL and ``install``, which only translate.

- ``argument_checks``: what a user may give, and the errors for all else
"""
