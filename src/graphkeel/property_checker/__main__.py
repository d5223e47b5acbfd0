"""python -m graphkeel.property_checker [--json] PROOF: exit 0 accepted, 1 rejected, 2 no proof."""

from __future__ import annotations

import sys

from graphkeel.checker.__main__ import main
from graphkeel.property_checker import check_file

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], check_file, str(__doc__)))
