"""Any adapter with its mutants tested by the workers of a Dask cluster (`docs/how-to/cluster.md`).

`behind_cluster` makes the class of an adapter into one that tests on a cluster; `dispatch` has the theory of operation.
Neither the workspace nor the adapter knows of it. Dask is imported when the first mutants are sent.
"""

from msp_bridge.cluster.adapter import behind_cluster

__all__ = ["behind_cluster"]
