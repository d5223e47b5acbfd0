"""The graph as it is now, compared without labels: what has drifted since the fit, how right the
answers still are, and what to do."""

from graphkeel.monitor.advice import ACTIONS, MonitorSettings, Prices
from graphkeel.monitor.drift import DriftTest
from graphkeel.monitor.history import read_history
from graphkeel.monitor.report import DriftReport, monitor

__all__ = [
    "ACTIONS",
    "DriftReport",
    "DriftTest",
    "MonitorSettings",
    "Prices",
    "monitor",
    "read_history",
]
