"""Finishes the type stub that nanobind writes for the native module.

    python finish_stub.py raw.pyi finished.pyi folder_of_the_module

What nanobind cannot know: dtypes named `int`, `float` and `bool`, and casts of those names, shadow
the built-in types, which therefore are written `builtins.int`; what functions return that choose
their result at run time; the exceptions, which call the package `vkml` their home; and the methods
of tensors that `vkml/methods.py` writes in Python.
"""

import ast
import importlib
import pathlib
import sys
from types import ModuleType

METHODS = pathlib.Path(__file__).parents[2] / "python" / "vkml" / "methods.py"
SHADOWED = {"bool", "float", "int"}
WITHOUT_ARGUMENTS = {
    "Iterator": "Iterator[Tensor]",
    "dict": "builtins.dict[typing.Any, typing.Any]",
    "tuple": "builtins.tuple[typing.Any, ...]",
}
# By name, for functions of the module and methods of Tensor that would return `object`.
RETURNS = {
    "dtype": "dtype",
    "grad": "Tensor | None",
    "item": "typing.Any",
    "max": "typing.Any",
    "min": "typing.Any",
    "nonzero": "typing.Any",
    "numpy": "np.ndarray[typing.Any, typing.Any]",
    "realize": "Tensor",
    "result_type": "dtype",
    "sort": "typing.Any",
    "tolist": "typing.Any",
    "unique": "typing.Any",
    "__array__": "np.ndarray[typing.Any, typing.Any]",
}


def expression(text: str) -> ast.expr:
    """The syntax tree of one expression."""
    return ast.parse(text, mode="eval").body


class Annotations(ast.NodeTransformer):
    """Rewrites the names inside one annotation."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in SHADOWED:
            return expression(f"builtins.{node.id}")
        if node.id in WITHOUT_ARGUMENTS:
            return expression(WITHOUT_ARGUMENTS[node.id])
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        node.slice = self.visit(node.slice)
        return node


def is_in_place_name(name: str) -> bool:
    """Whether a method changes its tensor and returns it, as `relu_` does."""
    return name.endswith("_") and not name.endswith("__")


def is_slot(node: ast.FunctionDef) -> bool:
    """Whether a method is a binary operator of the type itself, which shows no signature."""
    names = [parameter.arg for parameter in node.args.posonlyargs]
    return node.name.startswith("__") and names[:2] == ["self", "value"]


class Stub(ast.NodeTransformer):
    """Rewrites the annotations of functions and of variables in classes."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        node.annotation = Annotations().visit(node.annotation)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        annotations = Annotations()
        parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        for parameter in parameters:
            if parameter.annotation is not None:
                parameter.annotation = annotations.visit(parameter.annotation)
        if node.args.vararg is not None and node.args.vararg.annotation is None:
            node.args.vararg.annotation = expression("typing.Any")
        if node.args.kwarg is not None and node.args.kwarg.annotation is None:
            node.args.kwarg.annotation = expression("typing.Any")
        if is_slot(node):
            del node.args.posonlyargs[2:], node.args.defaults[:]  # the modulus of powers
            parameters[1].annotation = expression("typing.Any")
            node.returns = expression("Tensor")
            return node
        returns = node.returns
        if isinstance(returns, ast.Name) and returns.id == "object":
            is_operator = node.name.startswith("__")
            is_in_place = is_in_place_name(node.name)
            default = "Tensor" if is_operator or is_in_place else "object"
            returns = expression(RETURNS.get(node.name, default))
        node.returns = None if returns is None else annotations.visit(returns)
        return node


def written_in_python() -> list[ast.stmt]:
    """The methods of tensors that are written in Python: signatures and docstrings."""
    module = ast.parse(METHODS.read_text())
    classes = [node for node in module.body if isinstance(node, ast.ClassDef)]
    methods = [node for node in classes[0].body if isinstance(node, ast.FunctionDef)]
    for method in methods:
        method.body = [method.body[0], *ast.parse("...").body]
    return list(methods)


def exceptions(module: ModuleType) -> str:
    """The source of the module's exception classes."""
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Exception)
    ]
    return "\n".join(
        f"class {kind.__name__}({', '.join(base_name(base) for base in kind.__bases__)}):\n"
        f"    {kind.__doc__!r}"
        for kind in found
    )


def base_name(base: type) -> str:
    """How the stub names a base class."""
    return f"builtins.{base.__name__}" if base.__module__ == "builtins" else base.__name__


def main(source: pathlib.Path, target: pathlib.Path, module: ModuleType) -> None:
    """Rewrite `source` into `target`."""
    raw = ast.parse(source.read_text())
    for node in raw.body:
        if isinstance(node, ast.ClassDef) and node.name == "Tensor":
            node.body += written_in_python()
    tree = Stub().visit(raw)
    head = [node for node in tree.body[:1] if isinstance(node, ast.Expr)]
    added = ast.parse(
        "import builtins\nimport typing\nimport numpy as np\n__version__: str\n"
        + exceptions(module)
    )
    tree.body = [*head, *added.body, *tree.body[len(head) :]]
    target.write_text(ast.unparse(ast.fix_missing_locations(tree)) + "\n")


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[3])
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), importlib.import_module("_vkml"))
