"""Accuracy of simtree compared with other libraries, on pairs of unseen identities and of known classes.

`catalogue` has one list of models per data set, `data` the splits, `peers` the models that simtree is compared with, `protocol`
a single run, and `report` the tables and plots; `run` and `page` are the commands.
"""
