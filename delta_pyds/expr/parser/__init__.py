"""Text to syntax, by Spark's grammar.

- ``lexer``: text to tokens with their positions
- ``token_reader``: a reader of tokens, types, strings, typed literals and intervals
- ``literals``: the types of number literals
- ``recognizer``: whether a text is one expression of Spark, and the functions that it calls
- ``grammar``: tokens to syntax, following Spark's grammar rule by rule
- ``syntax``: expressions before names and types are resolved
"""
