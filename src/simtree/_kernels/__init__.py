"""Compiled kernels: arrays in, arrays out. No classes but tuples, no validation, no randomness of their own."""
