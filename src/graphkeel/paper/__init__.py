"""What reproduces the paper and is not used by anything else: rivals, tables, figures."""
