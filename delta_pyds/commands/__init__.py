"""Commands that change or maintain a table, one a module; without Spark."""
