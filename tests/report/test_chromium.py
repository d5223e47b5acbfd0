"""The page in a real browser: headless Chromium, as packaged by Debian and others."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

from graphkeel.report.page import write_report
from graphkeel.report.sources import find_sources
from threads import PATIENCE

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium found (Debian: apt-get install chromium)"
)


def browse(page: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    profile = page.parent / "profile"
    common = (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--enable-logging=stderr",
    )
    command = [str(BROWSER), *common, f"--user-data-dir={profile}", *flags, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)


def console(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Lines that the page wrote to its console, errors included."""
    return re.findall(r"CONSOLE[:(].*", done.stderr)


@pytest.fixture
def page(run_folder, certificate_folder, tmp_path):
    return write_report(
        find_sources([run_folder, certificate_folder]), tmp_path / "page" / "report.html"
    )


def with_script(page: Path, script: str) -> Path:
    """The page with something done to it after it has loaded."""
    changed = page.with_name("changed.html")
    changed.write_text(page.read_text().replace("</body>", f"<script>{script}</script></body>"))
    return changed


def rows(dom: str, table: str) -> list[list[str]]:
    body = re.search(rf'<table id="{table}">.*?<tbody>(.*?)</tbody>', dom, re.S).group(1)
    cells = [
        re.findall(r"<td[^>]*>(.*?)</td>", row, re.S)
        for row in re.findall(r"<tr.*?</tr>", body, re.S)
    ]
    return [[re.sub(r"<[^>]+>", "", cell).strip() for cell in row] for row in cells]


def test_it_opens_without_a_console_error_and_shows_the_right_numbers(page):
    done = browse(page, "--dump-dom")
    assert console(done) == []
    assert rows(done.stdout, "seed-table")[0][:4] == ["0", "70.00", "80.00", "+10.00"]
    assert rows(done.stdout, "class-table") == [
        ["0", "5", "40.00", "80.00", "+40.00"],
        ["1", "5", "100.00", "80.00", "-20.00"],
    ]
    assert [row[:2] for row in rows(done.stdout, "certificate-table")] == [
        ["0", "proved"],
        ["1", "proved"],
    ]
    assert '<b id="gain" class="up">+10.50</b>' in done.stdout
    nodes = rows(done.stdout, "node-table")  # the search begins with "test changed"
    assert [(row[0], row[-1]) for row in nodes] == [("4", "gained"), ("5", "gained"), ("7", "lost")]


def test_a_console_error_would_be_noticed(page):
    done = browse(with_script(page, "noSuchThing();"), "--dump-dom")
    assert any("noSuchThing" in line for line in console(done))


def test_the_search_narrows_and_the_loop_runs(page):
    search = (
        "const s = document.getElementById('node-search'); s.value = 'test lost';"
        " s.dispatchEvent(new Event('input'));"
    )
    click = "byId('loop-random').click();"
    done = browse(with_script(page, search + click), "--dump-dom")
    assert console(done) == []
    assert [row[0] for row in rows(done.stdout, "node-table")] == ["7"]
    assert re.search(r'id="node-count"[^>]*>1 node<', done.stdout)
    assert "V fell on every step" in done.stdout


def test_a_screenshot_is_not_blank(page):
    shot = page.with_name("shot.png")
    browse(page, f"--screenshot={shot}", "--window-size=1200,1400")
    assert distinct_colours(shot) > 50
    blank = page.with_name("blank.html")
    blank.write_text("<!doctype html><title>nothing</title>")
    browse(blank, f"--screenshot={shot}", "--window-size=1200,1400")
    assert distinct_colours(shot) < 5


def test_it_fits_a_phone(page):
    """Wide tables scroll in their own boxes; nothing else is wider than the page."""
    probe = (
        "document.body.style.width = '360px';"
        " document.title = 'width ' + document.body.scrollWidth;"
    )
    assert "<title>width 360</title>" in browse(with_script(page, probe), "--dump-dom").stdout


def test_no_column_is_cut_on_a_phone(page):
    """The effect is what people look for: and all tables fit their boxes."""
    measure = (
        "for (const name of ['node', 'class', 'seed', 'certificate']) {"
        " const box = byId(name + '-table').parentElement;"
        " document.title += ` ${name} ${box.scrollWidth <= box.clientWidth}`; }"
        " parent.postMessage(document.title, '*');"
    )
    inner = with_script(page, measure)
    frame = page.with_name("phone.html")
    frame.write_text(
        "<script>onmessage = (e) => { document.title = e.data; };</script>"
        f'<iframe src="{inner.name}" width="360" height="800"></iframe>'
    )
    dom = browse(frame, "--dump-dom", "--virtual-time-budget=5000").stdout
    assert "node true class true seed true certificate true</title>" in dom


def distinct_colours(path: Path) -> int:
    """Colours in a PNG of eight bits a channel, read without an imaging library."""
    raw = path.read_bytes()
    width, height, depth, kind = struct.unpack(">IIBB", raw[16:26])
    assert depth == 8
    channels = {2: 3, 6: 4}[kind]
    data, at = b"", 8
    while at < len(raw):
        (length,) = struct.unpack(">I", raw[at : at + 4])
        data += raw[at + 8 : at + 8 + length] if raw[at + 4 : at + 8] == b"IDAT" else b""
        at += 12 + length
    lines, stride = zlib.decompress(data), 1 + width * channels
    # Rows are stored as differences to their neighbours; in a blank picture there are next to none.
    starts = (i * stride + 1 + k * channels for i in range(height) for k in range(0, width, 3))
    return len({lines[start : start + channels] for start in starts})
