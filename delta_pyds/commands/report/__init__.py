"""A report: one HTML page that describes a table, measured from its log.

Invariants: a million files are columns of Arrow, never objects. The content of a page is bounded in number and length
for any table. Nothing is changed.

- ``files``: the live files as columns; histograms of size, age and deleted rows
- ``depth``: the number of files that a search for one value opens
- ``versions``: the changes of each commit, and the size of the table after it
- ``gains``: the gains of vacuum and optimize, without running them
- ``measure``: all numbers of a report
- ``pictures``: SVG
- ``blocks``: parts of HTML
- ``page``: the page
- ``style``: its CSS
"""
