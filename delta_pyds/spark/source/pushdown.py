"""The decision whether filters pushed by Spark may prune files.

Spark 4.1 to 4.3 keeps the outcome of a pushdown on the relation and not on
the scan: if a DataFrame is used twice with different filters, or once without,
the second use then reads the files of the first one. Returning
the filters as residual does not help: the partitions leak. A source
that prunes by pushed filters therefore returns wrong rows there, and this one does not,
unless the user promises to use the load once.
"""

from __future__ import annotations

from delta_pyds.spark.options.read import ReadOptions
from delta_pyds.spark.versions import has_filters, keeps_pushed_filters_with_scan


def pushes_filters(options: ReadOptions) -> bool:
    """Whether pushed filters may prune: the option pushFilters asks for it, or this version of Spark is correct."""
    if options.change_feed or not has_filters():
        return False
    if options.push_filters is not None:
        return options.push_filters
    return keeps_pushed_filters_with_scan()
