"""The report: one self-contained HTML page made of the files that other commands wrote."""
