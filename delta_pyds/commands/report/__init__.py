"""A report: what a table looks like, measured from its log, as one HTML file.

Invariants: a million files are columns of Arrow, never objects; what a page shows is bounded in number and length
whatever the table holds; nothing is changed.

- ``files``: what the log says of the live files, as columns; histograms of size, age and deleted rows
- ``partitions``: how files, bytes and rows lie in partitions
- ``depth``: how many files a search for one value has to open
- ``versions``: what each commit did, and how large the table was after it
- ``gains``: what vacuum and optimize would bring, without doing it
- ``measure``: all numbers of a report
- ``pictures``: SVG
- ``blocks``: parts of HTML
- ``page``: the file
- ``style``: its CSS
"""
