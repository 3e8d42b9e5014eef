"""Accuracy of simtree compared with other libraries, on pairs of unseen identities and of known classes.

`catalogue` and `small` have one list of models per data set, `lists` those that several sets share, and `data` the splits.
`peers` and the `peers_*` modules have the models that simtree is compared with, `ours` those of simtree, and `settings` what
`tune` has searched for. `protocol` is a single run, and `report` the tables and plots. `run`, `tune` and `page` are commands.
"""
