"""Model files: arrays and JSON in one archive, checked before anything is believed."""

from simtree.io._archive import ModelFileError

__all__ = ["ModelFileError"]
