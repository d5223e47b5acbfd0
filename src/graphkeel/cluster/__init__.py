"""A fit beyond one machine: a graph in shards, the workers of a Dask cluster."""

from graphkeel.cluster.fit import ClusterFit, fit_shards
from graphkeel.cluster.graph import ShardedGraph, save_shards
from graphkeel.cluster.work import ClusterSettings

__all__ = ["ClusterFit", "ClusterSettings", "ShardedGraph", "fit_shards", "save_shards"]
