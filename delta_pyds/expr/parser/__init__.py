"""Text to syntax, by Spark's grammar.

- ``lexer``: text to tokens with their positions
- ``token_reader``: tokens one after another, and types, strings, typed literals and intervals
- ``literals``: the types of number literals
- ``type_names``: Spark SQL's names of types
- ``recognizer``: whether a text is one expression of Spark, and what it calls
- ``grammar``: tokens to syntax, rule for rule as Spark's own grammar has it
- ``syntax``: expressions before names and types are known
"""
