# SPDX-License-Identifier: GPL-2.0-or-later
"""Every message: not empty, with the value seen in it, and with the right exit status."""

import ast
import importlib
import inspect
import re
import traceback
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from vsprof.terms import errors
from vsprof.terms import messages as terms_messages
from vsprof.terms.errors import BadInput, Message, RunFailed, SnapshotUnusable, VsprofError
from vsprof.testbeds import messages as testbeds_messages
from vsprof.workloads import messages as workloads_messages

# An argument of each name (or type) that the messages take.
BY_NAME = {
    "known": ["known-one"], "offered": ["known-one"], "why": OSError(28, "No space left on device"), "value": "seen-value", "seen": "seen-value",
    "problems": ["a problem"], "reasons": ["a reason"], "labels": ["a-b"], "names": ["seen-value"],
}  # fmt: skip
BY_TYPE = {
    "str": "seen-value", "int": 3, "float": 2.5, "Path": Path("/some/place"), "list[str]": ["seen-value"], "Iterable[str]": ["seen-value"], "Iterable[Path]": [Path("/some/place")],
    "Sequence[str]": ["seen-value"], "Mapping[str, float]": {"seen-value": 0.25}, "Mapping[str, tuple[int, int]]": {"seen-value": (1, 3)}, "Mapping[int, int]": {0: 3}, "Mapping[str, str]": {"seen-value": "on"}, "Iterable[float]": [2.5], "Sequence[int | None]": [3],
    "int | None": 3, "float | None": 2.5, "bool": True, "Iterable[tuple[str, str]]": [("seen-value", "another")],
    "object": "seen-value", "str | None": None, "Path | str": Path("/some/place"), "Iterable[object]": ["seen-value"], "VsprofError": VsprofError("inner"),
    "OSError": OSError(5, "I/O"), "Exception": ValueError("inner"), "FrameSummary": traceback.FrameSummary("/some/collector.py", 3, "numbers"),
}  # fmt: skip
# Values of the places of a `Message`, whose names say what they are.
BY_PLACE = {
    "path": Path("/some/place"), "page": Path("/some/place"), "notebook": Path("/some/place"), "ratio": 0.25, "load": 2.5, "percent": 2.5,
    "fault": OSError(28, "No space left on device"),
}  # fmt: skip
SEVERAL = ("columns", "others", "known", "labels", "one", "other", "cases", "reasons", "figures", "named", "names", "runs", "pairs")
BY_PLACE |= {place: ["seen-value", "another"] for place in SEVERAL}
ROOT = Path(__file__).parents[2]
FILES = sorted(path for path in ROOT.glob("[a-z]*/**/messages.py") if path.parts[-2] not in ("build", "tests"))
MODULES = [importlib.import_module(".".join(("vsprof", *path.relative_to(ROOT).with_suffix("").parts))) for path in FILES]
ROWS = {(module.__name__, name): message for module in MODULES for name, message in vars(module).items() if isinstance(message, Message)}
MESSAGES = [
    function
    for module in MODULES
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if function.__module__ == module.__name__ and not name.startswith("_")
]


def annotation(parameter: inspect.Parameter) -> str:
    """As it is written: without the modules of its names."""
    written = parameter.annotation
    return written if isinstance(written, str) else re.sub(r"\b[\w.]+\.(?=[A-Z])", "", inspect.formatannotation(written))


def argument(parameter: inspect.Parameter) -> object:
    kind = annotation(parameter)
    if kind == "str":
        return "seen-value"
    if parameter.name == "known" and kind == "int":
        return 1
    if parameter.name in BY_NAME and kind in ("object", "Iterable[object]", "Iterable[str]", "list[str]", "OSError"):
        return BY_NAME[parameter.name]
    return BY_TYPE[kind]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda function: function.__name__)
def test_a_message_says_what_was_seen(message):
    parameters = inspect.signature(message).parameters.values()
    made = message(**{p.name: argument(p) for p in parameters if p.default is p.empty})
    text = str(made)
    assert len(text) >= len("a reason")
    assert "None" not in text
    # A leftover of repr, such as <function …>; perf's own words are not.
    assert "<" not in text.replace("<not supported>", "") or isinstance(made, VsprofError)
    if any(annotation(p) == "str" for p in parameters):
        assert "seen-value" in text
    if isinstance(made, VsprofError):
        assert made.exit_status in (1, 2)


@pytest.mark.parametrize("message", ROWS.values(), ids=[name for _, name in ROWS])
def test_so_does_a_text_with_places(message):
    made = message(*(BY_PLACE.get(place, "seen-value") for place in message.places))
    text = str(made)
    assert any(word in text for word in ("seen-value", "/some/place", "0.25", "2.5"))
    assert not set("{}[]") & set(text)
    assert isinstance(made, VsprofError if message.kind is not str else str)
    with pytest.raises(ValueError, match="zip"):
        message(*message.places, "one too many")


def test_several_values_are_listed():
    assert Message("{names} and {cases:; }")(["a", "b"], ["c", "d"]) == "a, b and c; d"


def test_every_text_with_places_is_called_with_as_many_values():
    wrong = []
    rooms = {path.relative_to(ROOT).parts[0] for path in FILES} | {"vsprof"}
    for path in (path for room in rooms for path in (ROOT / room).rglob("*.py")):
        tree = ast.parse(path.read_text())
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        modules = {one.asname or one.name: f"{node.module}.messages" for node in imports for one in node.names if one.name == "messages"}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
                message = ROWS.get((modules.get(node.func.value.id, ""), node.func.attr))
                listed = any(isinstance(one, ast.Starred) for one in node.args)
                if message is not None and (node.keywords or (len(node.args) != len(message.places) and not listed)):
                    wrong.append(f"{path}:{node.lineno}: {node.func.attr} takes {', '.join(message.places)}")
    assert not wrong


def written(node: ast.AST) -> bool:
    """Whether an argument is a text that stands there, also a joined or formatted one."""
    return any(isinstance(one, ast.JoinedStr) or (isinstance(one, ast.Constant) and isinstance(one.value, str)) for one in _of_text(node))


def _of_text(node: ast.AST) -> list[ast.AST]:
    """The text's own parts: what stands in a call, such as `messages.x("switch")`, is its affair."""
    parts = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.body, node.orelse] if isinstance(node, ast.IfExp) else []
    return [node, *(inner for part in parts for inner in _of_text(part))]


def name_of(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def validators(trees: list[ast.Module]) -> set[str]:
    """The names of functions by which pydantic checks values: what they raise is what a user reads."""
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    given = {name_of(node.args[0]) for node in calls if name_of(node.func) in ("BeforeValidator", "AfterValidator", "PlainValidator")}
    functions = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    decorated = {
        one.name
        for one in functions
        if any(name_of(mark.func if isinstance(mark, ast.Call) else mark).endswith("_validator") for mark in one.decorator_list)
    }
    return given | decorated


def texts_out_of_place(sources: dict[str, str]) -> list[str]:
    """Where code writes the text of an error of ours itself, or of one that a validator raises."""
    kinds = {name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, VsprofError)}
    trees = {path: ast.parse(text) for path, text in sources.items()}
    checking, found = validators(list(trees.values())), []
    for path, tree in trees.items():
        inside = {
            id(node)
            for one in ast.walk(tree)
            if isinstance(one, ast.FunctionDef) and one.name in checking
            for node in ast.walk(one)
            if isinstance(node, ast.Call) and name_of(node.func) == "ValueError"
        }
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and (name_of(node.func) in kinds or id(node) in inside)]
        found += [f"{path}:{node.lineno}" for node in calls if any(map(written, node.args))]
    return found


def test_texts_of_errors_stand_in_messages():
    rooms = {path.relative_to(ROOT).parts[0] for path in FILES} | {"vsprof", "bench"}
    paths = [
        path for room in sorted(rooms) for path in sorted((ROOT / room).rglob("*.py")) if path.name not in ("messages.py", "errors.py")
    ]
    assert not texts_out_of_place({str(path.relative_to(ROOT)): path.read_text() for path in paths})


@pytest.mark.parametrize(
    "source",
    [
        'raise BadInput("text")',
        'raise errors.RunFailed(f"text {value}")',
        'def f():\n    return NotOffered("text" + why)',
        'class A:\n    @field_validator("load")\n    @classmethod\n    def _check(cls, load):\n        raise ValueError(f"load {load!r}")',
        'def _check(text):\n    raise ValueError("need text")\nName = Annotated[str, AfterValidator(_check)]',
    ],
)
def test_a_text_elsewhere_is_found(source):
    assert texts_out_of_place({"a.py": source})


@pytest.mark.parametrize(
    "source",
    [
        'raise messages.no_file("x")',
        "raise BadInput(messages.no_file(path))",
        "raise BadInput(str(error))",
        'raise ValueError("not what perf prints")',
    ],
)
def test_a_parsers_error_and_a_message_are_not(source):
    assert not texts_out_of_place({"a.py": source})


def test_exit_statuses():
    assert BadInput("x").exit_status == 2
    assert {kind("x").exit_status for kind in (VsprofError, RunFailed, SnapshotUnusable)} == {1}


@pytest.mark.parametrize(
    "kind",
    [
        testbeds_messages.command_failed("x", 1, ""),
        testbeds_messages.emulator_failed(""),
        testbeds_messages.lab_not_up(),
        testbeds_messages.no_control_channel(1, ""),
        workloads_messages.died("x", " "),
    ],
)
def test_silence_is_said_in_words(kind):
    assert not str(kind).rstrip().endswith(":")


def test_a_long_command_is_cut():
    assert len(str(testbeds_messages.command_failed("x " * 5000, 1, "failed"))) < 300


def test_an_unknown_value_names_it_and_the_known_ones():
    assert str(terms_messages.unknown_value("switch", "ovs", ["a", "b"])) == "unknown switch 'ovs': use one of a, b"


def test_a_misspelt_value_names_what_is_nearest():
    text = str(terms_messages.unknown_value("switch", "ovs-dpkd", ["kernel-ovs", "ovs-dpdk"]))
    assert text == "unknown switch 'ovs-dpkd': use one of kernel-ovs, ovs-dpdk; did you mean ovs-dpdk?"


def test_jupyter_shows_an_error_without_a_traceback(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    shell = InteractiveShell()
    shell.run_cell("from vsprof.terms.errors import BadInput\nraise BadInput('need a, found b')")
    assert capsys.readouterr().out.strip() == "BadInput: need a, found b"
