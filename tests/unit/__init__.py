"""Units, one module of the product at a time."""
