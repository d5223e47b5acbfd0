"""The datasets by name. Light to import: the command line lists them before anything is loaded."""

PAPER_DATASETS = ("cora", "citeseer", "pubmed", "photo", "computers")  # of the paper's tables
DATASETS = ("digits", *PAPER_DATASETS, "sbm")
