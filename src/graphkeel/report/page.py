"""The page: views into a template, style and script inlined, every string escaped and visible."""

from __future__ import annotations

import base64
import json
import shlex
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup

from graphkeel import __version__
from graphkeel.certificate import check_certificate
from graphkeel.core.errors import ConfigError
from graphkeel.core.files import write_text
from graphkeel.core.names import class_names
from graphkeel.core.optional import import_optional
from graphkeel.core.text import printable
from graphkeel.report import views
from graphkeel.report.certificate_view import certificate_view, loop_data
from graphkeel.report.charts import dumbbells
from graphkeel.report.sources import Sources

_CAPTIONS = {
    "figure-3": "Training against test nodes, before and after. t-SNE shows shapes; the numbers "
    "are measured in the embedding itself.",
    "figure-4": "The same nodes by class. The silhouette says how well classes hold together, "
    "measured in the embedding itself, not in the picture.",
    "figure-5": "V around the equilibrium, trajectories of the closed loop, and counterexamples "
    "met in training.",
}
_WRONG_CONTENT = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)


def write_report(sources: Sources, path: Path) -> Path:
    """Write the page; returns its path."""
    write_text(path, render_page(sources))
    return path


def write_own_report(
    facts: dict[str, Any],
    certificate: dict[str, Any] | None,
    path: Path,
    names: tuple[str, ...] = (),
) -> Path:
    """Write the page about a model of the user's own, whose certificate is checked for it."""
    checked = None if certificate is None else check_certificate(certificate)
    sources = Sources(own=facts, certificate=certificate, checked=checked, names=names)
    return write_report(sources, path)


def render_page(sources: Sources) -> str:
    """One HTML document that needs nothing else: no network, no file beside it."""
    incomplete = import_optional("jinja2", extra="report").TemplateError
    try:
        return _rendered(sources)
    except (*_WRONG_CONTENT, incomplete) as error:
        # Files may come from anywhere, and the template asks for all that it shows.
        got = f"{type(error).__name__}: {error}"[:200]
        raise ConfigError(
            "the files hold what no keel command writes", got=got, fix="Write them again."
        ) from error


def _rendered(sources: Sources) -> str:
    run = views.run_view(sources.run) if sources.run else None
    own = views.own_view(sources.own) if sources.own else None
    certificate = None
    if sources.certificate is not None and sources.checked is not None:
        certificate = certificate_view(sources.certificate, sources.checked)
    shown = own or run
    n_classes = shown["n_classes"] if shown else len(sources.names)
    names = list(map(printable, class_names(sources.names, n_classes)))
    data = {
        "names": names,
        "nodes": views.own_nodes(sources.own) if sources.own else views.run_nodes(sources.run),
        "loops": loop_data(sources.certificate) if sources.certificate else [],
    }
    return rendered(
        "report.html.j2",
        title=f"{own['model']} on {own['nodes']:,} nodes" if own else _title(run, certificate),
        run=run,
        own=own,
        names=names,
        certificate=certificate,
        same_data=_same_data(sources),
        figures=[_figure(path) for path in sources.figures],
        seed_chart=_seed_chart(run),
        shown=shown,
        class_chart=_class_chart(shown, names),
        commands=_commands(run, None if own else certificate),
        data=script_json(data),
        script=Markup(_text("report.js")),
    )


def rendered(template: str, **values: Any) -> str:
    """A template of ours with these values, every string escaped and visible.

    A character that is not a visible one is written as its escape: one that turns the direction of
    a text would show a name or a verdict that nobody wrote."""
    style = Markup(_text("report.css"))
    page = _template(template).render(style=style, version=__version__, **values)
    return "\n".join(map(printable, page.split("\n")))


def _called(label: int, names: list[str]) -> str:
    return names[label] if names else f"class {label}"


def script_json(value: Any) -> Markup:
    """JSON that may stand in a script element: no character of it can end the element or begin a
    comment."""
    text = json.dumps(_printable(value), allow_nan=False, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)


def _printable(value: Any) -> Any:
    """A JSON value whose texts are as a reader may see them."""
    if isinstance(value, dict):
        return {printable(name): _printable(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_printable(entry) for entry in value]
    return printable(value) if isinstance(value, str) else value


@cache
def _template(name: str) -> Any:
    jinja2 = import_optional("jinja2", extra="report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("graphkeel.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def _text(name: str) -> str:
    return (files("graphkeel.report") / "templates" / name).read_text(encoding="utf-8")


def _title(run: dict[str, Any] | None, certificate: dict[str, Any] | None) -> str:
    source = run["spec"] if run else certificate["provenance"] if certificate else {}
    if views.is_adaptation(source):
        source = {**source, "dataset": f"{source['source']} → {source['target']}"}
    parts = [str(source[key]) for key in ("dataset", "model", "method") if source.get(key)]
    return " · ".join(parts) or "graphkeel report"


def _same_data(sources: Sources) -> bool | None:
    """Whether the certificate speaks of data that the run used; None where one of them is
    missing."""
    if sources.run is None or sources.certificate is None:
        return None
    graph = sources.certificate.get("data")
    return bool(graph) and graph in {row.get("graph") for row in sources.run.rows}


def _figure(path: Path) -> dict[str, str]:
    """An SVG as an image: whatever is in the file, it cannot run a script in the page."""
    content = base64.b64encode(path.read_bytes()).decode()
    return {
        "uri": f"data:image/svg+xml;base64,{content}",
        "caption": _CAPTIONS.get(path.stem, path.stem),
    }


def _seed_chart(run: dict[str, Any] | None) -> Markup:
    rows = [{"name": f"seed {row['seed']}", **row} for row in (run["seeds"] if run else [])]
    return dumbbells(rows, label="accuracy of each seed, before and after")


def _class_chart(shown: dict[str, Any] | None, names: list[str]) -> Markup:
    rows = [
        {**row, "name": _called(row["label"], names)} for row in (shown or {}).get("classes", [])
    ]
    what = "accuracy" if shown and shown["tested"] else "share of nodes"
    neutral = what != "accuracy"
    return dumbbells(rows, label=f"{what} of each class, before and after", neutral=neutral)


_RUN_FLAGS = ("dataset", "model", "method", "split", "features")
_PROTOCOL_FLAGS = ("labels", "pca")  # of keel-paper run
_ADAPT_FLAGS = ("source", "target", "target_labels", "model", "method", "split", "features")
_CERTIFY_FLAGS = ("dataset", "model", "split", "features", "seed")


def _commands(run: dict[str, Any] | None, certificate: dict[str, Any] | None) -> list[str]:
    """The commands that repeat the run."""
    commands = []
    if run:
        seeds = [row["seed"] for row in run["seeds"]]
        adapts = views.is_adaptation(run["spec"])
        names: tuple[str, ...] = _ADAPT_FLAGS if adapts else _RUN_FLAGS
        if run["program"] != views.KEEL and not adapts:
            names += _PROTOCOL_FLAGS
        command = f"{run['program']} {'adapt' if adapts else 'run'}"
        flags = _flags(run["spec"], names)
        which = f"--seed {min(seeds)} --seeds {len(seeds)}"
        commands.append(f"{command} {flags} {which} --out run/")
    if certificate:
        flags = _flags(certificate["provenance"], _CERTIFY_FLAGS)
        commands.append(f"keel certify {flags} --out certificate/")
        commands.append("keel check certificate/certificate.json")
    return [printable(command) for command in commands]  # one line each, also with a strange name


def _flags(values: dict[str, Any], names: tuple[str, ...]) -> str:
    given = {name.replace("_", "-"): values[name] for name in names if name in values}
    if given.get("model") == "own":  # no name, but a file and the function that builds it
        named = values.get("model_options", {"weights": "FILE", "factory": "MODULE:FUNCTION"})
        given = given | {name: named[name] for name in ("weights", "factory")}
        del given["model"]
    return " ".join(f"--{flag} {shlex.quote(str(value))}" for flag, value in given.items())
