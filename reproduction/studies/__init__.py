"""Studies behind the defaults: which method or rule to use, on data that had no part in choosing it."""
