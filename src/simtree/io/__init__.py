"""Model files: arrays and JSON in one archive, validated when it is read."""

from simtree.io._fields import ModelFileError

__all__ = ["ModelFileError"]
