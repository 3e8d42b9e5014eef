"""Helpers that know nothing of pairs: checks of parameters, files, threads, folds, progress."""
