"""Print the lower bounds of a pyproject.toml as pins: a constraint file of the oldest dependencies.

python .ci/lower_bounds.py pyproject.toml > oldest.txt        no file, no line
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

REQUIREMENT = re.compile(r"^([\w.-]+)(?:\[.*\])?>=([\w.]+)$")


def pins(path: Path) -> list[str]:
    """name==bound of each dependency, extras left as they are: tools need not be old."""
    wanted = tomllib.loads(path.read_text(encoding="utf-8"))["project"]["dependencies"]
    found = [REQUIREMENT.match(line) for line in wanted]
    return [f"{match[1]}=={match[2]}" for match in found if match]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        sys.stdout.write("".join(f"{line}\n" for line in pins(Path(name))))
