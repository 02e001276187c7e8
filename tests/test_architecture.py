"""The arrows between packages point one way, Spark is met only where it belongs, and late.

Each rule is a function from one module to its breaches. It is applied to every module of the package, and to bad
snippets it must refuse.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tallybook.model.datasource import FILE_FORMATS
from tallybook.operations.registry import OPERATIONS

PACKAGE = Path(__file__).parent.parent / "src" / "tallybook"

LEVELS: tuple[frozenset[str], ...] = tuple(
    frozenset(level.split())
    for level in (
        "text exit_codes",
        "source",
        "errors",
        "secrets private",
        "model",
        "expressions",
        "rows",
        "resolve",
        "operations",
        "project",
        "storage store",
        "engine",
        "runs",
        "scenarios",
        "documents",
        "workspace reference",
        "doctor",
        "cli",
        "__main__ standby",
    )
)
"""A package imports from itself and from the levels above it here; those of one level never import each other."""

SPARK = ("expressions.compile", "expressions.functions", "rows", "operations", "storage", "engine")
SPARK_IN_ANNOTATIONS = ("expressions.registry", "runs", "workspace")
SPARK_LATE = ("expressions.functions", "operations")
"""The checker loads these, and `tallybook validate` has no second to spend on pyspark."""

PLANS_ONLY = ("operations", "rows")
"""They describe; the engine executes."""

NOT_EVERYWHERE = {"_jvm", "_jdf", "_jsc", "_sc", "rdd", "toPandas", "udf", "pandas_udf", "sparkContext"}
"""What Spark Connect does not have, or what leaves the JVM row by row."""

ACTIONS = {"collect", "take", "tail", "head", "show", "foreach", "foreachPartition", "toLocalIterator", "toArrow"}
ACTIONS_WITHOUT_ARGUMENTS = {"count", "first", "isEmpty", "checkpoint", "localCheckpoint"}
WRITERS = {"write", "writeTo", "writeStream"}

CONTRACT = tuple(
    f"operations.{name}"
    for name in ("assertion", "base", "binding", "flow", "one_pass", "publication", "registry", "schema")
)
"""What other packages know of operations. Any other module there is one operation, or serves several."""

BEHIND_THE_USE_CASES = {"store", "storage", "engine", "runs"}
"""What a command reaches through `workspace` only."""
OBSERVED = "engine.events"
"""The data that observers of a run get, such as progress on a terminal."""

PRINTER = "cli.screen"
"""Whatever text reaches a terminal goes through it, because text of users can command a terminal."""
PRINTERS = {"print", "pprint", "echo", "secho", "rprint", "print_exc", "print_exception", "print_json", "Console"}
FORMATS_ARE_NAMED = ("storage.formats", "model.datasource")
"""Here a format is what its name says. Everybody else asks the format or the datasource."""
FORMAT_NAMES = {*FILE_FORMATS, "spark_catalog", "database"}
DATASOURCES = {"FileSource", "DatabaseSource", "CatalogSource"}
STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}


@dataclass(frozen=True)
class Module:
    """A module by its name below `tallybook`, e.g. `operations.update`."""

    name: str
    tree: ast.Module
    is_package: bool = False

    @property
    def top(self) -> str:
        return self.name.partition(".")[0]

    def within(self, places: tuple[str, ...]) -> bool:
        return any(self.name == place or self.name.startswith(place + ".") for place in places)


@dataclass(frozen=True)
class Import:
    """One imported module; `late` when inside a function, `for_types` when only a type checker sees it."""

    target: str
    line: int
    late: bool
    for_types: bool


def load() -> list[Module]:
    modules = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        modules.append(Module(name, ast.parse(path.read_text(encoding="utf-8"), str(path)), is_package))
    return modules


def imports(module: Module) -> Iterator[Import]:
    """All imports of a module, relative ones made absolute, `import_module("…")` with a literal included."""

    def visit(node: ast.AST, late: bool, for_types: bool) -> Iterator[Import]:
        for target in _targets(module, node):
            yield Import(target, getattr(node, "lineno", 0), late, for_types)
        inside = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        typed = node.body if isinstance(node, ast.If) and _names(node.test) & {"TYPE_CHECKING"} else []
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside, for_types or child in typed)

    return visit(module.tree, late=False, for_types=False)


def _targets(module: Module, node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [name.name for name in names]
        case ast.ImportFrom(module=source, names=names, level=level):
            base = source or ""
            if level:
                here = ["tallybook", *module.name.split(".")] + ([""] if module.is_package else [])
                base = ".".join([*here[:-level], *([source] if source else [])])
            return [f"{base}.{name.name}" for name in names] if base == "tallybook" else [base]
        case ast.Call(func=function, args=[ast.Constant(value=str(target)), *_]) if _names(function) & {
            "import_module",
            "__import__",
        }:
            return [target]
    return []


def _names(node: ast.AST) -> set[str]:
    """The identifier a name, attribute, import or `getattr(x, "…")` stands for."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return {name}
        case ast.ImportFrom(names=names):
            return {name.name for name in names}
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]):
            return {name}
    return set()


def _level(top: str) -> int | None:
    return next((number for number, level in enumerate(LEVELS) if top in level), None)


def against_the_order(module: Module) -> Iterator[str]:
    """Imports of a package to the right, of a neighbour, or of one nobody gave a place."""
    own = _level(module.top)
    for found in imports(module):
        package, _, rest = found.target.partition(".")
        top = rest.partition(".")[0]
        if package != "tallybook" or top == module.top:
            continue
        level = _level(top)
        if own is None or level is None or level >= own:
            yield f"{module.name}:{found.line} imports {found.target}"


def misplaced_spark(module: Module) -> Iterator[str]:
    """Imports of pyspark where it does not belong, or too early."""
    for found in imports(module):
        if found.target.partition(".")[0] not in {"pyspark", "py4j"}:
            continue
        here = f"{module.name}:{found.line} imports {found.target}"
        if not module.within(SPARK + (SPARK_IN_ANNOTATIONS if found.for_types else ())):
            yield here
        elif module.within(SPARK_LATE) and not (found.late or found.for_types):
            yield f"{here} when it is loaded"


def not_plain_spark(module: Module) -> Iterator[str]:
    """Uses of what does not exist everywhere Spark runs."""
    for node in ast.walk(module.tree):
        for name in sorted(_names(node) & NOT_EVERYWHERE):
            yield f"{module.name}:{getattr(node, 'lineno', 0)} uses {name}"


def actions(module: Module) -> Iterator[str]:
    """Spark actions in packages that only describe."""
    if not module.within(PLANS_ONLY):
        return
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=name), args=args, keywords=keywords):
                acts = name in ACTIONS or (name in ACTIONS_WITHOUT_ARGUMENTS and not args and not keywords)
            case ast.Attribute(attr=name, ctx=ast.Load()):
                acts = name in WRITERS
            case _:
                continue
        if acts:
            yield f"{module.name}:{node.lineno} acts: {name}"


def prints(module: Module) -> Iterator[str]:
    """Printing, or touching the standard streams, anywhere but in the one printer."""
    if module.name == PRINTER:
        return
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in PRINTERS:
                yield f"{module.name}:{node.lineno} prints: {name}"
            case ast.Attribute(value=ast.Name(id="sys"), attr=name) if name in STREAMS:
                yield f"{module.name}:{node.lineno} uses sys.{name}"
            case ast.ImportFrom(module=source, names=names):
                for imported in names:
                    if imported.name in (STREAMS if source == "sys" else PRINTERS):
                        yield f"{module.name}:{node.lineno} imports {imported.name}"


def branches_on_formats(module: Module) -> Iterator[str]:
    """Choices by the name of a format, or by the class of a datasource."""
    if module.within(FORMATS_ARE_NAMED):
        return
    for node in ast.walk(module.tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                names = {name for side in (left, *others) for name in _texts(side)}
            case ast.Dict(keys=keys):
                names = {name for key in keys if key is not None for name in _texts(key)}
            case ast.MatchValue(value=value):
                names = _texts(value)
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, classes]):
                names = {name for inner in ast.walk(classes) for name in _names(inner)}
            case ast.MatchClass(cls=cls):
                names = _names(cls)
            case _:
                continue
        for name in sorted(names & (FORMAT_NAMES | DATASOURCES)):
            yield f"{module.name}:{getattr(node, 'lineno', 0)} chooses by {name}"


def _texts(node: ast.AST) -> set[str]:
    """The texts of a literal, and of the items of a tuple, list or set."""
    items = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return {item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)}


def past_the_use_cases(module: Module) -> Iterator[str]:
    """Commands that reach the store, the storage, the engine or the runs by themselves, for types included: they call
    `workspace` and print a document or lines."""
    if module.top != "cli":
        return
    for found in imports(module):
        package, _, rest = found.target.partition(".")
        if package == "tallybook" and rest.partition(".")[0] in BEHIND_THE_USE_CASES and rest != OBSERVED:
            yield f"{module.name}:{found.line} imports {found.target}"
    for node in ast.walk(module.tree):
        match node:
            case ast.Attribute(attr="store" | "existing_store" | "resources" as name):
                yield f"{module.name}:{node.lineno} uses .{name}"


def asks_which_operation(module: Module) -> Iterator[str]:
    """Knowing single operations outside `operations`: by their classes, by a step's class or by a name of a type.

    Every question about a step is answered by the contract of `Step`, so that an operation nobody knew of is treated
    right.
    """
    if module.within(("operations",)):
        return
    for found in imports(module):
        package, _, name = found.target.partition(".")
        concrete = name == "operations" or (name.startswith("operations.") and name not in CONTRACT)
        if package == "tallybook" and concrete:
            yield f"{module.name}:{found.line} imports {found.target}"
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, classes]):
                asks = any(name.endswith("Step") for part in ast.walk(classes) for name in _names(part))
            case ast.MatchClass(cls=ast.Name(id=name) | ast.Attribute(attr=name)):
                asks = name.endswith("Step")
            case ast.Compare(left=left, comparators=others) if any(map(_is_type, (left, *others))):
                asks = any(isinstance(part, ast.Constant) and part.value in OPERATIONS for part in ast.walk(node))
            case ast.Match(subject=subject, cases=cases) if _is_type(subject):
                patterns = (part for case in cases for part in ast.walk(case.pattern))
                asks = any(isinstance(part, ast.Constant) and part.value in OPERATIONS for part in patterns)
            case _:
                continue
        if asks:
            yield f"{module.name}:{getattr(node, 'lineno', 0)} asks which operation a step is"


def _is_type(node: ast.AST) -> bool:
    """`….type` and `…["type"]`."""
    match node:
        case ast.Attribute(attr="type") | ast.Subscript(slice=ast.Constant(value="type")):
            return True
    return False


Rule = Callable[[Module], Iterator[str]]
RULES: tuple[Rule, ...] = (
    against_the_order,
    misplaced_spark,
    not_plain_spark,
    actions,
    prints,
    past_the_use_cases,
    asks_which_operation,
    branches_on_formats,
)
MODULES = load()


@pytest.mark.parametrize("rule", RULES)
def test_the_package_keeps_the_rule(rule: Rule) -> None:
    assert [breach for module in MODULES if module.name for breach in rule(module)] == []


def test_every_module_has_a_place() -> None:
    assert {module.top for module in MODULES if module.name and _level(module.top) is None} == set()


@pytest.mark.parametrize(
    ("rule", "name", "text"),
    [
        pytest.param(against_the_order, "model.dataset", "import tallybook.expressions.parse", id="right"),
        pytest.param(against_the_order, "model.dataset", "from tallybook.cli import app", id="far right"),
        pytest.param(against_the_order, "operations.update", "from tallybook import engine", id="package itself"),
        pytest.param(against_the_order, "resolve.match", "from ..project import load", id="relative"),
        pytest.param(against_the_order, "rows", "from ..engine import session", id="relative, through modules"),
        pytest.param(against_the_order, "storage.files", "from tallybook.store.store import Store", id="neighbour"),
        pytest.param(against_the_order, "store.store", "import tallybook.storage", id="the other neighbour"),
        pytest.param(against_the_order, "rows.ids", "def f():\n    import tallybook.engine", id="in a function"),
        pytest.param(
            against_the_order,
            "errors",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from tallybook.runs import runner",
            id="for types",
        ),
        pytest.param(against_the_order, "runs.runner", "import_module('tallybook.cli.main')", id="by a literal"),
        pytest.param(against_the_order, "cli.main", "import tallybook.extras", id="without a place"),
        pytest.param(against_the_order, "extras", "import tallybook.model", id="from without a place"),
        pytest.param(against_the_order, "cli.main", "from tallybook import Workspace", id="public names"),
        pytest.param(misplaced_spark, "model.columns", "from pyspark.sql import types", id="in the model"),
        pytest.param(misplaced_spark, "expressions.check", "def f():\n    import pyspark", id="late, in the checker"),
        pytest.param(misplaced_spark, "expressions.registry", "import pyspark.sql", id="not only for types"),
        pytest.param(misplaced_spark, "expressions.compiler", "import pyspark", id="a name that begins the same"),
        pytest.param(misplaced_spark, "operations.update", "from pyspark.sql import functions as F", id="early"),
        pytest.param(misplaced_spark, "operations.base", "class A:\n    import pyspark", id="early, in a class"),
        pytest.param(
            misplaced_spark,
            "operations.base",
            "if TYPE_CHECKING:\n    pass\nelse:\n    import pyspark",
            id="early, where a type checker does not look",
        ),
        pytest.param(misplaced_spark, "expressions.functions.text", "import pyspark.sql", id="early, in a function"),
        pytest.param(not_plain_spark, "engine.session", "spark._jvm", id="jvm"),
        pytest.param(not_plain_spark, "rows.ids", "frame._jdf", id="jdf"),
        pytest.param(not_plain_spark, "storage.files", "frame.rdd.map(f)", id="rdd"),
        pytest.param(not_plain_spark, "storage.files", "getattr(frame, 'rdd')", id="rdd by a literal"),
        pytest.param(not_plain_spark, "expressions.functions.text", "F.udf(f)", id="udf"),
        pytest.param(not_plain_spark, "operations.update", "from pyspark.sql.functions import udf as u", id="renamed"),
        pytest.param(not_plain_spark, "scenarios.compare", "frame.toPandas()", id="toPandas"),
        pytest.param(actions, "operations.update", "frame.collect()", id="collect"),
        pytest.param(actions, "rows.joins", "frame.groupBy('a').agg(b).count()", id="count"),
        pytest.param(actions, "rows.joins", "frame.take(1)", id="take"),
        pytest.param(actions, "operations.output", "frame.write.parquet(path)", id="write"),
        pytest.param(actions, "operations.output", "frame.writeTo(table)", id="writeTo"),
        pytest.param(asks_which_operation, "runs.outputs", "from tallybook.operations.output import Output", id="one"),
        pytest.param(asks_which_operation, "engine.plan", "from tallybook.operations import update", id="by package"),
        pytest.param(asks_which_operation, "engine.plan", "from ..operations.grouping import grouped", id="a helper"),
        pytest.param(asks_which_operation, "engine.plan", "isinstance(step, OutputStep)", id="class of a step"),
        pytest.param(asks_which_operation, "engine.plan", "isinstance(step, a.B | a.CStep)", id="one of its classes"),
        pytest.param(asks_which_operation, "engine.plan", "match step:\n  case OutputStep(): pass", id="class matched"),
        pytest.param(asks_which_operation, "cli.progress", "step.type == 'output'", id="name of a type"),
        pytest.param(asks_which_operation, "runs.run_guard", "body['type'] in ('output', 'x')", id="in a document"),
        pytest.param(
            asks_which_operation, "engine.plan", "match step.type:\n  case 'append' | 'x': pass", id="name matched"
        ),
        pytest.param(past_the_use_cases, "cli.runs", "def f():\n    import tallybook.store.store", id="the store"),
        pytest.param(past_the_use_cases, "cli.plan", "from tallybook.engine.plan import Plan", id="the engine"),
        pytest.param(past_the_use_cases, "cli.plan", "from tallybook import storage", id="the storage"),
        pytest.param(
            past_the_use_cases, "cli.run", "if TYPE_CHECKING:\n    from ..runs.runner import RunResult", id="a type"
        ),
        pytest.param(past_the_use_cases, "cli.runs", "opened.existing_store()", id="the store of a workspace"),
        pytest.param(prints, "cli.run", "print('x')", id="print"),
        pytest.param(prints, "cli.run", "typer.echo('x')", id="echo"),
        pytest.param(prints, "cli.run", "from typer import secho", id="imported"),
        pytest.param(prints, "scenarios.report", "sys.stdout.write('x')", id="stream"),
        pytest.param(prints, "scenarios.pytest_plugin", "stream = sys.stderr", id="stream by another name"),
        pytest.param(prints, "cli.run", "from sys import stdout", id="stream imported"),
        pytest.param(prints, "cli.run", "Console().log('x')", id="rich"),
        pytest.param(prints, "cli.run", "traceback.print_exc()", id="traceback"),
        pytest.param(branches_on_formats, "storage.write", "if source.type == 'delta': pass", id="format"),
        pytest.param(branches_on_formats, "runs.replay", "format not in ('delta', 'x')", id="format in a tuple"),
        pytest.param(branches_on_formats, "storage.read", "match type:\n    case 'orc': pass", id="format as a case"),
        pytest.param(branches_on_formats, "storage.damage", "{'orc': b'ORC'}[type]", id="format as a key"),
        pytest.param(branches_on_formats, "resolve.locate", "isinstance(source, FileSource | str)", id="datasource"),
        pytest.param(branches_on_formats, "cli.plan", "match a:\n    case CatalogSource(): pass", id="class as a case"),
    ],
)
def test_a_breach_is_found(rule: Rule, name: str, text: str) -> None:
    assert len(list(rule(Module(name, ast.parse(text), is_package="." not in name)))) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("operations.update", "from tallybook.operations.base import Operation\nfrom .base import Operation"),
        ("operations.update", "from tallybook.resolve.check import tokens\nfrom tallybook.rows import ids"),
        ("operations.update", "if TYPE_CHECKING:\n    import pyspark\ndef f():\n    import pyspark"),
        ("expressions.registry", "if TYPE_CHECKING:\n    from pyspark.sql import Column"),
        ("engine.pipeline", "frame.count()\nframe.write.parquet(path)"),
        ("rows.joins", "F.count('a')\nF.first(b)\n'text'.count('t')\n[].count(1)"),
        ("cli.run", "import tallybook.workspace\nfrom tallybook.errors import Problem"),
        ("cli.run", "from tallybook.documents.runs import RunDocument\nopened.upgrade_store()"),
        ("cli.progress", "from tallybook.engine.events import Event"),
        ("workspace", "from tallybook.store.store import Store\nself.resources.existing_store()"),
        ("engine.plan", "from tallybook.operations.base import Step"),
        ("engine.plan", "step.publishes is not None\nproblem.type == 'InvalidYaml'\noutput.mode == 'append'"),
        ("operations.append", "from tallybook.operations.grouping import grouped\nisinstance(step, AppendStep)"),
        ("cli.screen", "import sys\nsys.stdout.write('x')"),
        ("storage.formats.delta", "source.type == 'delta'"),
        ("runs.replay", "FileSource(type='parquet')\nsource.type == other.source.type\nmodel_dump(mode='json')"),
        ("engine.java", "subprocess.run(command, stdout=PIPE).stdout\nfile.write('x')"),
    ],
)
def test_what_is_allowed_passes(name: str, text: str) -> None:
    module = Module(name, ast.parse(text))
    assert [breach for rule in RULES for breach in rule(module)] == []


def test_the_checker_and_the_command_line_load_no_spark() -> None:
    """The rules above look at one module at a time; this follows the imports to their end."""
    script = "import sys, tallybook.cli.main, tallybook.project.check\nprint('pyspark' in sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert loaded.stdout == "False\n"
