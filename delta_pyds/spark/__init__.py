"""The thin layer over the core: the only package that imports pyspark."""
