"""The stubs of the native part say what the built module has: names, kinds, parameters and which of them may be left out."""

import ast
import inspect
from pathlib import Path

import pytest
from bem import _bem

STUB = ast.parse((Path(__file__).resolve().parents[1] / "src" / "bem" / "_bem.pyi").read_text())
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
FUNCTIONS = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}


def is_public(name):
    return not name.startswith("_")


def said(function):
    """Parameters of a stub, without the object itself, and whether each has a default."""
    listed = function.args
    names = [argument.arg for argument in [*listed.posonlyargs, *listed.args]]
    defaults = [False] * (len(names) - len(listed.defaults)) + [True] * len(listed.defaults)
    pairs = list(zip(names, defaults))
    pairs += [(argument.arg, value is not None) for argument, value in zip(listed.kwonlyargs, listed.kw_defaults)]
    return pairs[1:] if pairs and pairs[0][0] == "self" else pairs


def built(callable_):
    """The same of the built module; nothing where it does not say its parameters."""
    try:
        parameters = inspect.signature(callable_).parameters.values()
    except (TypeError, ValueError):
        return None
    pairs = [(parameter.name, parameter.default is not inspect.Parameter.empty) for parameter in parameters]
    return pairs[1:] if pairs and pairs[0][0] == "self" else pairs


def decorators(function):
    return {word.id for word in function.decorator_list if isinstance(word, ast.Name)}


def test_the_stub_has_the_names_of_the_module():
    constants = {node.target.id for node in STUB.body if isinstance(node, ast.AnnAssign)}
    named = {*CLASSES, *FUNCTIONS, *constants}
    assert {name for name in named if is_public(name)} == {name for name in dir(_bem) if is_public(name)}
    assert all(hasattr(_bem, name) for name in named)
    types = {"str": str, "int": int}
    for node in STUB.body:
        if isinstance(node, ast.AnnAssign):
            assert type(getattr(_bem, node.target.id)) is types[node.annotation.id], node.target.id


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_the_parameters_that_the_stub_says(name):
    function = getattr(_bem, name)
    assert callable(function) and built(function) in (None, said(FUNCTIONS[name]))


@pytest.mark.parametrize("name", CLASSES)
def test_classes_have_the_members_that_the_stub_says(name):
    kind, stub = getattr(_bem, name), CLASSES[name]
    bases = [base.id for base in stub.bases]
    assert all(base in [parent.__name__ for parent in kind.__mro__] for base in bases)
    members = {node.name: node for node in stub.body if isinstance(node, ast.FunctionDef)}
    assert {member for member in members if is_public(member)} == {member for member in vars(kind) if is_public(member)}
    for member, node in members.items():
        if member == "__init__":
            assert built(kind) in (None, said(node)), member
            continue
        found = inspect.getattr_static(kind, member)
        is_static = isinstance(found, staticmethod)
        assert is_static == ("staticmethod" in decorators(node)), member
        if "property" in decorators(node):
            assert inspect.isdatadescriptor(found) and not callable(found), member
        else:
            assert built(getattr(kind, member)) in (None, said(node)), member


def test_most_parameters_can_be_compared():
    """Control: a build that says no parameters would pass the other tests."""
    methods = [getattr(getattr(_bem, name), node.name) for name, stub in CLASSES.items() for node in stub.body
               if isinstance(node, ast.FunctionDef) and is_public(node.name) and "property" not in decorators(node)]
    methods += [getattr(_bem, name) for name in FUNCTIONS]
    assert len(methods) // 2 < sum(built(method) is not None for method in methods)
