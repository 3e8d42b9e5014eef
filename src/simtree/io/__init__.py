"""Model files: arrays and JSON in one archive, checked before anything is believed."""

from simtree.io._fields import ModelFileError

__all__ = ["ModelFileError"]
