"""Text to syntax, by Spark's grammar.

- ``lexer``: text to tokens with their positions
- ``token_reader``: tokens one after another, and what is written with them alone: types, strings, typed literals
- ``literals``: the types of number literals
- ``type_names``: the names that Spark SQL has for types
- ``recognizer``: whether a text is one expression of Spark's, and what it calls
- ``grammar``: tokens to syntax, rule for rule as Spark's own grammar has it
- ``syntax``: what an expression says before names and types are known
"""
