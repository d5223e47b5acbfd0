"""A look at the graph as it is now, without labels: what has drifted since the fit, how right the
answers still are, and what to do."""

from graphkeel.monitor.advice import ACTIONS, MonitorSettings, Prices
from graphkeel.monitor.drift import DriftTest
from graphkeel.monitor.history import keep_look, read_history
from graphkeel.monitor.look import DriftReport, monitor
from graphkeel.monitor.profile import Profile

__all__ = [
    "ACTIONS",
    "DriftReport",
    "DriftTest",
    "MonitorSettings",
    "Prices",
    "Profile",
    "keep_look",
    "monitor",
    "read_history",
]
