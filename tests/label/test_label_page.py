"""The page in a real browser: thirty digits by keyboard, a reload in the middle, two tabs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from graphkeel import Reconstructor
from graphkeel.graph import load
from graphkeel.label import Session, Shown, read_labels
from graphkeel.models import train_model

pytest.importorskip("starlette", reason="pip install 'graphkeel[label]'")
pytest.importorskip("uvicorn", reason="pip install 'graphkeel[label]'")

from served import served

playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium found (Debian: apt-get install chromium)"
)
MARKUP = "<img src=x onerror=alert(1)> & <b>bold</b>"


@pytest.fixture(scope="module")
def task():
    return load("digits")


@pytest.fixture
def session(task, tmp_path):
    rec = Reconstructor(train_model("sgc", task), seed=0).fit(task.to_data())
    cells = dict.fromkeys(range(task.n_nodes), (MARKUP, "javascript:alert(1)"))
    return Session(rec, task.to_data(), tmp_path / "label", shown=Shown(("title", "link"), cells))


@pytest.fixture
def context(session) -> Iterator[tuple]:
    """A browser with the address to open; whatever it complains about fails the test."""
    complaints: list[str] = []
    with playwright.sync_playwright() as driver, served(session) as client:
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        opened = browser.new_context(viewport={"width": 1200, "height": 900})
        opened.on("console", lambda line: complaints.append(line.text))
        opened.on("weberror", lambda error: complaints.append(str(error.error)))
        opened.on("dialog", lambda dialog: complaints.append(dialog.message))
        yield opened, client, complaints
        browser.close()
    session.finish()


def version(page) -> str:
    return page.get_attribute("body", "data-version")


def press(page, *keys: str) -> None:
    """Keys that answer, and the wait until the next node is shown."""
    before = version(page)
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_selector(f"body:not([data-version='{before}'])")


def node_of(page) -> int:
    return int(page.inner_text("#node").removeprefix("Node "))


def keys_for(page, label: int) -> list[str]:
    """1 to 3 where the class is among the likely ones, else its name, typed."""
    likely = page.locator("#likely .name").all_inner_texts()
    name = f"class {label}"
    return [str(likely.index(name) + 1)] if name in likely else ["/", str(label), "Enter"]


def label(page, task, count: int) -> dict[int, int]:
    given = {}
    for _ in range(count):
        node = node_of(page)
        given[node] = int(task.y[node])
        press(page, *keys_for(page, given[node]))
    return given


def kept(session) -> dict[int, int]:
    batch = read_labels(session.path)
    return dict(zip(batch.nodes.tolist(), batch.labels.tolist(), strict=True))


def test_thirty_digits_by_keyboard_with_a_reload_and_two_tabs(context, session, task):
    browser, client, complaints = context
    page = browser.new_page()
    page.goto(client.address)
    page.wait_for_selector("#likely button")
    assert page.url.endswith(f":{client.port}/")  # the token has left the address

    given = label(page, task, 12)
    assert kept(session) == given
    page.reload()
    page.wait_for_selector("#likely button")
    assert "12 labels" in page.inner_text("#progress")

    press(page, "Backspace")  # undo, and the same again
    again = node_of(page)
    assert again in given
    given |= label(page, task, 1)
    press(page, "Space")  # skip
    assert "1 skipped" in page.inner_text("#progress")

    given |= label(page, task, 9)
    other = browser.new_page()  # with the cookie
    other.goto(f"http://127.0.0.1:{client.port}/")
    other.wait_for_selector("#likely button")
    same = node_of(other)
    assert same == node_of(page)
    given |= label(other, task, 1)
    page.evaluate("state.version -= 1")  # as if the focus had not refreshed it
    page.keyboard.press("1")
    page.wait_for_selector("#status:not([hidden])")
    assert "another tab" in page.inner_text("#status")
    assert node_of(page) == node_of(other) != same
    given |= label(page, task, 8)

    assert len(given) == 30 and kept(session) == given
    session.wait()
    page.reload()
    page.wait_for_selector("#likely button")
    assert "30 labels" in page.inner_text("#rests")
    assert page.inner_text("#advice").startswith(("Go on", "You can stop"))
    assert page.locator("#trend circle").count() == 3
    assert page.locator("#graph g").count() > 1
    assert [line for line in complaints if "409" not in line] == []


def test_values_are_text_and_the_page_fits_a_phone(context):
    browser, client, complaints = context
    page = browser.new_page()
    page.goto(client.address)
    page.wait_for_selector("#likely button")
    assert page.locator("#shown dd").all_inner_texts() == [MARKUP, "javascript:alert(1)"]
    assert page.locator("#shown a, #shown img, #shown b").count() == 0
    page.keyboard.type("class")  # letters go into the field by themselves
    assert page.input_value("#typed") == "class"
    assert page.locator("#matches li").count() == 6
    page.keyboard.press("Escape")
    assert page.input_value("#typed") == ""
    for width in (320, 375, 760, 1200):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert complaints == []
