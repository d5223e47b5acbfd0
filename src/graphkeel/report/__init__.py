"""The report: one self-contained HTML page made of the files that other commands wrote."""

from graphkeel.report.graph_chart import draw_graph_loop
from graphkeel.report.page import render_page, write_own_report, write_report
from graphkeel.report.sources import Sources, find_sources

__all__ = [
    "Sources",
    "draw_graph_loop",
    "find_sources",
    "render_page",
    "write_own_report",
    "write_report",
]
