"""The command line ``deltapy``: inspection and maintenance of tables, without Spark.

- ``main``: arguments, and the exit status
- ``verbs``: the commands
- ``output``: results as text for people, or as JSON for scripts
- ``run``: a program with delta_pyds installed in its Spark sessions
- ``child``: what Python runs when it starts in that program
"""
