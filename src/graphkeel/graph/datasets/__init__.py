"""The datasets: one loader a file, found by name in the registry. The names are light to import:
the command line lists them before anything is loaded."""

DATASETS = ("digits", "sbm")
# Of the paper's tables: `graphkeel-paper` has them, and the library says so.
PAPER_DATASETS = ("cora", "citeseer", "pubmed", "photo", "computers")
