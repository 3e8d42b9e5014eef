"""The paper's experiments: its table, its figures, its curves on MNIST, and a look at its first lemma."""
