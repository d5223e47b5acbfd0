"""The branch-and-bound engine: complete, rigorous, on every core."""

from graphkeel.verify.branch.engine import BranchVerifier

__all__ = ["BranchVerifier"]
