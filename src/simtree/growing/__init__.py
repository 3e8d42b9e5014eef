"""Tree growing: the TreeRank algorithm, bagging, and cross-validation."""
