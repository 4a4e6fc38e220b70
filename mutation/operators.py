"""The small changes: what can be done to a syntax tree so that one thing in it is different.

Left alone are annotations, docstrings, decorators, protocols, the words of error messages, other texts, and
`strict` of zip: a change there is no fault of arithmetic or order.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

Site = tuple[ast.AST, str, int | None]
"""Where a node stands: its parent, the field, and the place in it if the field is a list."""

_COMPARE: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.Pow: ast.Mult,
}
_CALLS = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "bisect_right": "bisect_left",
    "bisect_left": "bisect_right",
    "minimum": "maximum",
    "maximum": "minimum",
    "ROUND_FLOOR": "ROUND_CEILING",
    "ROUND_CEILING": "ROUND_FLOOR",
}


@dataclass(frozen=True)
class Mutant:
    """One change of one file: where, of what kind, the line before and after, and the whole source."""

    name: str  # file:line:number, stable as long as the file is
    line: int
    kind: str
    before: str
    after: str
    source: str


@dataclass(frozen=True)
class _Change:
    kind: str
    make: Callable[[ast.AST], ast.AST]


def mutants_of(file: str, source: str) -> list[Callable[[], Mutant]]:
    """Every change of a source, made when it is asked for."""
    return [
        lambda number=number, place=place: _made(file, source, number, place)  # type: ignore[misc]
        for number, place in enumerate(_places(source))
    ]


def _places(source: str) -> list[tuple[int, int]]:
    """For each change the number of its node in the order of `_nodes`, and which change of that node."""
    found = []
    for at, (node, _, _) in enumerate(_nodes(ast.parse(source))):
        found += [(at, which) for which in range(len(_changes(node)))]
    return found


def _made(file: str, source: str, number: int, place: tuple[int, int]) -> Mutant:
    tree = ast.parse(source)
    node, (parent, field, position), statement = next(islice(_nodes(tree), place[0], None))
    change = _changes(node)[place[1]]
    before = ast.unparse(statement).splitlines()[0]
    line = int(getattr(node, "lineno", getattr(statement, "lineno", 1)))
    new = ast.copy_location(change.make(node), node)
    if position is None:
        setattr(parent, field, new)
    else:
        getattr(parent, field)[position] = new
    after = ast.unparse(new if node is statement else statement).splitlines()[0]
    changed = ast.unparse(ast.fix_missing_locations(tree))
    if before == after:  # it is further below in the same statement
        before, after = f"… {ast.unparse(node)}", f"… {ast.unparse(new)}"
    return Mutant(f"{file}:{line}:{number}", line, change.kind, before, after, changed)


def _nodes(tree: ast.AST, around: ast.AST | None = None) -> Iterator[tuple[ast.AST, Site, ast.AST]]:
    """All nodes that may be changed, with their places and the statements that hold them, in order."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list", "type_comment"):
            continue
        children = value if isinstance(value, list) else [value]
        for position, child in enumerate(children):
            if not isinstance(child, ast.AST) or _left_alone(child):
                continue
            holder = child if isinstance(child, ast.stmt) or around is None else around
            yield child, (tree, field, position if isinstance(value, list) else None), holder
            if not isinstance(child, ast.Raise | ast.JoinedStr):  # a message is words
                yield from _nodes(child, holder)


def _left_alone(node: ast.AST) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.keyword) and node.arg == "strict":  # of zip: a check of what never happens
        return True
    if isinstance(node, ast.ClassDef):
        return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name):
        return node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)  # a docstring


def _changes(node: ast.AST) -> list[_Change]:
    """What can be done to a node, without what lies below it."""
    if isinstance(node, ast.Compare):
        return _compare(node)
    if isinstance(node, ast.BinOp):
        return _arithmetic(node)
    if isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        return [_Change("and/or", lambda n: ast.BoolOp(other(), n.values))]  # type: ignore[attr-defined]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        return [_Change("sign or not left out", lambda n: n.operand)]  # type: ignore[attr-defined]
    if isinstance(node, ast.Constant):
        return _constant(node)
    if isinstance(node, ast.Name | ast.Attribute):
        return _named(node)
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        return [_Change("condition negated", _negated)]
    return _statements(node)


def _compare(node: ast.Compare) -> list[_Change]:
    found = []
    for at, operator in enumerate(node.ops):
        for other in _COMPARE[type(operator)]:

            def make(n: ast.AST, at: int = at, other: type[ast.cmpop] = other) -> ast.AST:
                assert isinstance(n, ast.Compare)
                return ast.Compare(n.left, [*n.ops[:at], other(), *n.ops[at + 1 :]], n.comparators)

            found.append(_Change("comparison", make))
    return found


def _arithmetic(node: ast.BinOp) -> list[_Change]:
    if isinstance(node.op, ast.FloorDiv):

        def up(n: ast.AST) -> ast.AST:
            assert isinstance(n, ast.BinOp)
            inner = ast.BinOp(ast.UnaryOp(ast.USub(), n.left), ast.FloorDiv(), n.right)
            return ast.UnaryOp(ast.USub(), inner)

        return [_Change("rounded up", up)]
    other = _ARITHMETIC.get(type(node.op))
    if other is None:
        return []
    return [_Change("arithmetic", lambda n: ast.BinOp(n.left, other(), n.right))]  # type: ignore[attr-defined]


def _constant(node: ast.Constant) -> list[_Change]:
    value = node.value
    if isinstance(value, bool):
        return [_Change("true/false", lambda _: ast.Constant(not value))]
    if isinstance(value, int):
        return [
            _Change("one more", lambda _: ast.Constant(value + 1)),
            _Change("one less", lambda _: ast.Constant(value - 1)),
        ]
    return []


def _named(node: ast.Name | ast.Attribute) -> list[_Change]:
    name = node.id if isinstance(node, ast.Name) else node.attr
    if name not in _CALLS or not isinstance(node.ctx, ast.Load):
        return []

    def make(n: ast.AST) -> ast.AST:
        if name.startswith("bisect"):  # the other one may not be imported
            return ast.parse(f"__import__('bisect').{_CALLS[name]}", mode="eval").body
        if isinstance(n, ast.Name):
            return ast.Name(_CALLS[name], n.ctx)
        assert isinstance(n, ast.Attribute)
        return ast.Attribute(n.value, _CALLS[name], n.ctx)

    return [_Change("the other function", make)]


def _negated(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.If | ast.While | ast.IfExp)
    test = ast.UnaryOp(ast.Not(), node.test)
    return type(node)(test, node.body, node.orelse)  # type: ignore[arg-type]


def _statements(node: ast.AST) -> list[_Change]:
    if isinstance(node, ast.Expr | ast.AugAssign | ast.Raise | ast.Assert | ast.Delete):
        return [_Change("statement left out", lambda _: ast.Pass())]
    if isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Name):
        return [_Change("statement left out", lambda _: ast.Pass())]
    if isinstance(node, ast.Continue):
        return [_Change("break for continue", lambda _: ast.Break())]
    if isinstance(node, ast.Break):
        return [_Change("continue for break", lambda _: ast.Continue())]
    if isinstance(node, ast.Return) and node.value is not None:
        return [_Change("nothing returned", lambda _: ast.Return(ast.Constant(None)))]
    return []
