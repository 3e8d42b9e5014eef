"""How good simtree is beside its peers, on pairs of people never seen in training and of classes that were.

`catalogue` has one list of models a data set, `data` the splits, `peers` what simtree is compared with, `protocol` what one run
finds, `report` tables and pictures; `run` and `page` are the commands.
"""
