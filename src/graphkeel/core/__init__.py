"""Shared by every package: errors, optional packages, files written whole, limits of memory."""

from graphkeel.core.errors import (
    CertificateError,
    ConfigError,
    DataError,
    KeelError,
    MemoryLimitError,
    MissingDependencyError,
    ModelError,
    ProblemError,
    StorageError,
)

__all__ = [
    "CertificateError",
    "ConfigError",
    "DataError",
    "KeelError",
    "MemoryLimitError",
    "MissingDependencyError",
    "ModelError",
    "ProblemError",
    "StorageError",
]
