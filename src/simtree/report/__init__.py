"""One HTML file for the person who decides: error rates with bands, a threshold to move, and what the model looks at."""

from simtree.report._write import Origin, write

__all__ = ["Origin", "write"]
