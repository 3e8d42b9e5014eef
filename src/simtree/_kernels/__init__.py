"""Compiled kernels on arrays and named tuples; inputs are not validated, and random numbers are passed in."""
