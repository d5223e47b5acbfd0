"""The report: one self-contained HTML page made of the files that other commands wrote."""

from graphkeel.report.charts import dumbbells, trend
from graphkeel.report.fit_facts import fit_facts, stored_facts
from graphkeel.report.graph_chart import draw_graph_loop
from graphkeel.report.page import render_page, rendered, write_own_report, write_report
from graphkeel.report.sources import Sources, find_sources, read_nodes

__all__ = [
    "Sources",
    "draw_graph_loop",
    "dumbbells",
    "find_sources",
    "fit_facts",
    "read_nodes",
    "render_page",
    "rendered",
    "stored_facts",
    "trend",
    "write_own_report",
    "write_report",
]
