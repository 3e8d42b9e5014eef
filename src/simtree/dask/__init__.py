"""Models on a Dask cluster: the functions take an ordinary model and distributed data, and return ordinary objects.

Requires the extra ``simtree[dask]``.
"""

import importlib.util

if importlib.util.find_spec("dask") is None or importlib.util.find_spec("distributed") is None:
    raise ImportError('simtree.dask needs Dask; install it with: pip install "simtree[dask]"')

from simtree.dask._fit import calibrate_threshold, evaluate, fit
from simtree.dask._gallery import ClusterSearch, identify
from simtree.dask._search import pair_score, top_k

__all__ = ["ClusterSearch", "calibrate_threshold", "evaluate", "fit", "identify", "pair_score", "top_k"]
