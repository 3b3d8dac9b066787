"""The command line ``deltapy``: what is in a table, and what keeps it well, without Spark.

- ``main``: arguments, and the status that a command ends with
- ``verbs``: what each command does
- ``output``: results as text for people, or as JSON for scripts
"""
