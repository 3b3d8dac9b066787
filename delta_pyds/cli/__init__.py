"""The command line ``deltapy``: inspection and maintenance of tables, without Spark.

- ``main``: arguments, and the exit status
- ``verbs``: the commands
- ``output``: results as text for people, or as JSON for scripts
"""
