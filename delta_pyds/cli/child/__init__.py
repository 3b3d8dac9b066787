"""The directory that ``deltapy run`` puts on the ``PYTHONPATH`` of a program.

- ``sitecustomize``: what Python runs when it starts
"""
