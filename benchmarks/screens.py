"""The pages of `keel label`, `monitor` and `report` in Chromium, light and dark, wide and narrow.

    python benchmarks/screens.py FOLDER

On digits: thirty nodes are labelled with the keyboard, the page is reloaded in the middle; then a
week in which features moved and a week in which edges did are monitored. FOLDER gets a picture of
each page in each way. A page that is wider than its window, or writes to the browser's console,
ends the script. docs/images has `label-light-wide.png` and the upper half of
`monitor-light-wide.png`, with 48 colours."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, sync_playwright

from graphkeel.graph import load

BROWSERS = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
QUIET = ("--no-sandbox", "--disable-background-networking", "--disable-sync")
WIDTHS = {"wide": 1100, "narrow": 390}


def keel(folder: Path, *words: str) -> None:
    command = [sys.executable, "-m", "graphkeel.cli.main", *words]
    subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL)


@contextmanager
def opened(scheme: str = "light") -> Iterator[Page]:
    """A page whose complaints end the script."""
    with sync_playwright() as driver:
        found = next(path for path in BROWSERS if Path(path).exists())
        browser = driver.chromium.launch(executable_path=found, args=list(QUIET))
        page = browser.new_page(color_scheme=scheme)  # type: ignore[arg-type]
        complaints: list[str] = []
        page.on("console", lambda line: complaints.append(line.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        yield page
        browser.close()
    if complaints:
        raise SystemExit(f"the page complained: {complaints}")


def pictures(page: Page, name: str, folder: Path) -> None:
    """The page as it is, in each way."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for width, pixels in WIDTHS.items():
            page.set_viewport_size({"width": pixels, "height": 900})
            page.wait_for_timeout(300)
            if page.evaluate("document.documentElement.scrollWidth") > pixels:
                raise SystemExit(f"{name} is wider than {pixels}")
            page.screenshot(path=folder / f"{name}-{scheme}-{width}.png", full_page=True)


def labelled(page: Page, count: int, y: np.ndarray) -> None:
    """Answer so many nodes with the keyboard."""
    for _ in range(count):
        version = page.get_attribute("body", "data-version")
        label = y[int(page.inner_text("#node").removeprefix("Node "))]
        likely = page.locator("#likely .name").all_inner_texts()
        name = f"class {label}"
        keys = [str(likely.index(name) + 1)] if name in likely else ["/", str(label), "Enter"]
        for key in keys:
            page.keyboard.press(key)
        page.wait_for_selector(f"body:not([data-version='{version}'])")


def label_page(folder: Path, y: np.ndarray) -> None:
    command = [sys.executable, "-m", "graphkeel.cli.main", "label", "run"]
    server = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    address = next(line for line in server.stderr if line.startswith("http")).strip()
    with opened() as page:
        page.goto(address)
        for count in (15, 15):
            page.wait_for_selector("#likely button")
            labelled(page, count, y)
            page.wait_for_timeout(4000)
            page.reload()
        page.wait_for_selector("#likely button")
        pictures(page, "label", folder)
    server.send_signal(signal.SIGINT)
    server.wait()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    task = load("digits")
    x, edges, y = task.x.numpy(), task.edge_index.numpy(), task.y.numpy()
    rng = np.random.default_rng(0)
    moved = x * np.exp(0.6 * rng.normal(size=64)) + 0.3 * rng.normal(size=64)
    rewired = edges.copy()
    other = rng.random(edges.shape[1]) < 0.4
    rewired[1, other] = rng.integers(len(y), size=int(other.sum()))
    keel(folder, "run", "--seeds", "2", "--out", "run")
    weeks = {"quiet": (x, edges), "moved": (moved.astype(np.float32), edges)}
    for name, (features, links) in {**weeks, "rewired": (x, rewired)}.items():
        np.savez(folder / name, x=features, edge_index=links)
        keel(folder, "monitor", "run", "--data", f"{name}.npz")
    label_page(folder, y)
    keel(folder, "certify", "--out", "run")
    keel(folder, "report", "run")
    for name in ("monitor", "report"):
        with opened() as page:
            page.goto((folder / "run" / f"{name}.html").absolute().as_uri())
            pictures(page, name, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
