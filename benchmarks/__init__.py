"""Benchmarks: the bridge beside the tools and libraries that it could be compared with, in the same minutes."""
