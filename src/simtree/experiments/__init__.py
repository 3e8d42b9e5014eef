"""The experiments of the paper: Table 1, the figures, the ROC curves on MNIST, and a discussion of Lemma 1."""
