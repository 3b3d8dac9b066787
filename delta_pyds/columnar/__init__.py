"""Arrow: schemas, casts, evaluation of expressions."""
