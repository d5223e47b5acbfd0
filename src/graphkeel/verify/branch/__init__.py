"""The branch-and-bound engine: complete, rigorous, on every core."""

from graphkeel.verify.branch.engine import BranchVerifier, warm_up

__all__ = ["BranchVerifier", "warm_up"]
