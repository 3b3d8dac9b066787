"""One verb each: what changes a table, above transactions and data files, without Spark."""
