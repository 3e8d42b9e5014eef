"""General helpers: validation of parameters, files, threads, folds and progress."""
