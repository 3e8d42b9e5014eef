"""Growing: TreeRank, the bags of a forest, and cross-validation."""
