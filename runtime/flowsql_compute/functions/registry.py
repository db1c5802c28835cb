"""The function registry: one declaration per function, found by name, resolved by argument types.

The binder asks :func:`resolve_call` / :func:`resolve_aggregate`; nobody else maps names to behaviour. A function is
declared with :func:`scalar` in one of the modules of ``_MODULES``; nothing else is written by hand for a new one.
A module is imported when a function of it is first called: ``declared_in`` says which, and
``python docs/make_functions.py`` writes it.
"""

from __future__ import annotations

import enum
import importlib
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any, Final

from flowsql_compute.eval.context import EvalContext
from flowsql_compute.functions.declared_in import DECLARED_IN
from flowsql_compute.functions.signature import FAMILIES, Signature, call_text, family_name, parse_signature, summary
from flowsql_compute.functions.spark_form import BY_KERNEL, SparkForm
from flowsql_core.errors import BindError, InternalError, NotSupportedYetError, did_you_mean
from flowsql_core.expr import Call, Case, Cast, Expr, Literal
from flowsql_core.python_call import called_function
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_core.types.coerce import branch_type, explicit_cast_allowed

_PACKAGE: Final = "flowsql_compute.functions."

#: All modules of functions; overloads in several of them are tried in this order.
_MODULES = (
    "logic", "math", "text.string", "text.regex", "time.temporal", "time.patterns", "collections.constructors",
    "system", "collections.arrays", "collections.maps", "json.read", "json.write", "json.variant",
    "collections.structured", "text.edit", "text.search", "text.digest", "text.codec", "text.url", "text.inet",
    "text.character_class", "text.regex_search", "text.printf", "bitmap",
)  # fmt: skip

Options = tuple[tuple[str, Any], ...]


class Nulls(enum.Enum):
    """How NULL arguments and the nullability of the result hang together."""

    #: NULL in, NULL out; NOT NULL exactly when all arguments are.
    PROPAGATE = "propagate"
    #: The result may be NULL whatever comes in.
    NULLABLE = "nullable"
    #: The result is never NULL.
    NOT_NULL = "not null"
    #: ``returns`` decides.
    CUSTOM = "custom"


PROPAGATE, NULLABLE, NOT_NULL, CUSTOM = Nulls.PROPAGATE, Nulls.NULLABLE, Nulls.NOT_NULL, Nulls.CUSTOM


@record
class Invocation:
    """What a kernel knows beside its arguments.

    ``n`` rows to make; argument and result types; options of the call (``unit``, ``side``). ``constant``: the arguments
    are constants, the first of which came as a column of one row. ``args``: the arguments as they are written.
    """

    n: int
    context: EvalContext
    arg_types: tuple[t.LogicalType, ...]
    type: t.LogicalType
    options: Options = ()
    #: Kept from batch to batch by the compiled call: a seeded generator.
    memory: dict[str, Any] = field(default_factory=dict)
    constant: bool = False
    args: tuple[Expr, ...] = ()

    def option(self, name: str, default: Any = None) -> Any:
        """One option by name."""
        return dict(self.options).get(name, default)


#: Arrow arrays or scalars in (a literal stays a scalar; the first argument is a column unless a later one is),
#: an array of ``n`` rows or a scalar out.
Kernel = Callable[..., Any]


#: Derives the result type where a signature cannot say it, from arguments and options; None: they do not fit. The
#: nullability counts when the null rule is ``CUSTOM``.
ResultRule = Callable[[Sequence[Expr], dict[str, Any]], t.LogicalType | None]
#: Makes the expression of a matched call itself (NULLIF is a CASE); None: the call stays one.
Rewrite = Callable[[tuple[Expr, ...], Span | None], Expr | None]


@record
class FunctionDef:
    """A scalar function, one overload.

    ``raises``: evaluating it on a row may fail, so that branches not taken must not evaluate it. ``costly``: worth
    evaluating on needed rows only. ``passes_call``: the kernel takes an :class:`Invocation` first.
    """

    signature: Signature
    kernel: Kernel | None
    nulls: Nulls
    deterministic: bool
    raises: bool
    costly: bool
    passes_call: bool
    returns: ResultRule | None
    coerce: Callable[[tuple[Expr, ...], t.LogicalType], tuple[Expr, ...]] | None
    rewrite: Rewrite | None
    check: Callable[[Sequence[Expr], Span | None], None] | None
    spark: SparkForm
    doc: str

    @property
    def name(self) -> str:
        """Registry name, upper case."""
        return self.signature.name

    @property
    def module(self) -> str:
        """Where it is declared, under ``flowsql_compute.functions``."""
        return self.kernel.__module__.removeprefix(_PACKAGE)


#: Of the modules imported so far.
_FUNCTIONS: dict[str, list[FunctionDef]] = {}
_ALIASES: dict[str, str] = {}
_loaded: set[str] = set()


def scalar(
    *signatures: str,
    nulls: Nulls = PROPAGATE,
    deterministic: bool = True,
    raises: bool = False,
    costly: bool = False,
    returns: ResultRule | None = None,
    coerce: Callable[[tuple[Expr, ...], t.LogicalType], tuple[Expr, ...]] | None = None,
    rewrite: Rewrite | None = None,
    check: Callable[[Sequence[Expr], Span | None], None] | None = None,
    aliases: tuple[str, ...] = (),
    spark: SparkForm | None = None,
) -> Callable[[Kernel], Kernel]:
    """Declare a scalar function; the decorated function is its kernel, its docstring the manual's text.

    Args:
        signatures: overloads that share the kernel, see ``signature``.
        nulls: how NULLs and nullability go.
        deterministic: False keeps constant folding and common sub-expressions away.
        raises: a row may make it fail.
        costly: lazily evaluated inside AND, OR and CASE.
        returns: derives the result type instead of the signature.
        coerce: casts arguments beyond what the signature says.
        rewrite: makes another expression instead of a call, or None.
        check: refuses matched arguments with a BindError of its own.
        aliases: other names.
        spark: Spark SQL form, see ``spark_form``, or why there is none; None: FlowSQL's kernel runs there.
    """

    def register(kernel: Kernel) -> Kernel:
        code = kernel.__code__
        passes_call = code.co_argcount > 0 and code.co_varnames[0] == "call"
        for text in signatures:
            signature = parse_signature(text)
            definition = FunctionDef(
                signature, kernel, nulls, deterministic, raises, costly, passes_call, returns, coerce, rewrite, check,
                BY_KERNEL if spark is None else spark, kernel.__doc__ or "",
            )  # fmt: skip
            insort(_FUNCTIONS.setdefault(signature.name, []), definition, key=_rank)
            for alias in aliases:
                _ALIASES[alias] = signature.name
        return kernel

    return register


def _rank(definition: FunctionDef) -> int:
    """Overloads stand in the order of their modules, whichever is imported first; those of a module as written."""
    return _MODULES.index(definition.module)


def _load(modules: Sequence[str] = _MODULES) -> None:
    for module in modules:
        if module not in _loaded:
            importlib.import_module(_PACKAGE + module)
            _loaded.add(module)


def _overloads(name: str) -> list[FunctionDef] | None:
    """The declarations of a name in upper case; None: there are none."""
    # A name that the written module lacks is looked for everywhere.
    _load(DECLARED_IN.get(name, _MODULES))
    return _FUNCTIONS.get(_ALIASES.get(name, name))


def definitions() -> tuple[FunctionDef, ...]:
    """All scalar functions, overload by overload, module by module."""
    _load()
    groups = sorted(_FUNCTIONS.values(), key=lambda group: _rank(group[0]))
    return tuple(definition for group in groups for definition in group)


def declared_in() -> dict[str, tuple[str, ...]]:
    """The modules that declare each name, aliases too; what ``declared_in.DECLARED_IN`` must hold."""
    _load()
    made = {name: tuple(dict.fromkeys(one.module for one in group)) for name, group in _FUNCTIONS.items()}
    return dict(sorted((made | {alias: made[name] for alias, name in _ALIASES.items()}).items()))


def function_names() -> tuple[str, ...]:
    """Names of all functions that run, operators included, sorted; aggregates too."""
    return tuple(sorted({*DECLARED_IN, *_aggregate_names()}))


def is_aggregate(name: str) -> bool:
    """Whether the name (any case) is a built-in aggregate function."""
    name = name.upper()
    return name not in DECLARED_IN and name in _aggregate_names()


def _aggregate_names() -> frozenset[str]:
    # Loaded on demand: a plain projection does not need the declarations of aggregates.
    from flowsql_compute.functions.aggregate import aggregate_names

    return aggregate_names()


def resolve_call(name: str, args: tuple[Expr, ...], options: Options = (), span: Span | None = None) -> Expr:
    """The typed call of a function or operator on bound operands, with the casts that they need.

    Raises:
        BindError: unknown function, wrong number or types of arguments; in Flink's words.
        NotSupportedYetError: a built-in of Flink that does not run yet.
    """
    name = name.upper()
    overloads = _overloads(name)
    if overloads is None:
        raise _unknown(name, args, span)
    name = overloads[0].name
    if any(isinstance(arg.type, t.NullType) for arg in args):
        if name in _REFUSING_NULL:
            check_no_null(args, span)
        args = _nulls_typed(name, overloads[0].signature, args)
    by_option = dict(options)
    for definition in overloads:
        made = _try_overload(definition, args, options, by_option, span)
        if made is not None:
            return made
    raise _misfit(name, overloads, args, span)


#: Operators that take any type and yet no bare NULL.
_REFUSING_NULL: Final = frozenset({"AND", "GREATEST", "IF", "LEAST", "OR"})

#: What a bare NULL is taken for, by family.
_NULL_TYPES: dict[str, t.LogicalType] = {
    "STRING": t.STRING, "INTEGER": t.INT, "BINARY": t.BYTES, "BOOLEAN": t.BOOLEAN, "ARRAY": t.ArrayType(element=t.INT),
}  # fmt: skip


def _nulls_typed(name: str, signature: Signature, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Bare NULLs as values of the parameters' types, where Flink takes them."""
    from flowsql_compute.functions.flink_names import NULL_TAKING

    families = NULL_TAKING.get(name)
    if name == "TO_TIMESTAMP_LTZ" and isinstance(args[0].type, t.NullType):
        # A text, as the pattern and the zone are; the epoch of a bare NULL is refused beside a precision.
        texts = all(isinstance(arg.type, t.CharacterType) for arg in args[1:])
        return (implicit_cast(args[0], t.STRING), *args[1:]) if texts else args
    if families is None:
        return args
    made = []
    for place, arg in enumerate(args):
        family = signature.param(place)
        typed = isinstance(arg.type, t.NullType) and family in families
        made.append(implicit_cast(arg, _NULL_TYPES[family]) if typed else arg)
    return tuple(made)


def check_no_null(args: Sequence[Expr], span: Span | None) -> None:
    """Refuse a bare NULL among the arguments."""
    for arg in args:
        if isinstance(arg.type, t.NullType):
            raise BindError("illegal-null", "Illegal use of 'NULL'", arg.span or span, "write CAST(NULL AS <type>)")


def _try_overload(
    definition: FunctionDef, args: tuple[Expr, ...], options: Options, by_option: dict[str, Any], span: Span | None
) -> Expr | None:
    wanted = definition.signature.matches([arg.type for arg in args])
    if wanted is None:
        return None
    if definition.check is not None:
        definition.check(args, span)
    if definition.rewrite is not None:
        made = definition.rewrite(args, span)
        if made is not None:
            return made
    cast = tuple(implicit_cast(arg, type_) for arg, type_ in zip(args, wanted, strict=True))
    if definition.returns is not None:
        derived = definition.returns(cast, by_option)
        if derived is None:
            return None
        type_ = derived
    else:
        type_ = definition.signature.result_type(wanted)
    match definition.nulls:
        case Nulls.PROPAGATE:
            type_ = type_.as_nullable(any(arg.type.nullable for arg in args))
        case Nulls.NULLABLE:
            type_ = type_.as_nullable()
        case Nulls.NOT_NULL:
            type_ = type_.as_nullable(False)
        case Nulls.CUSTOM:
            pass
    if definition.coerce is not None:
        cast = definition.coerce(cast, type_)
    return Call(definition.name, cast, type_, options, span)


def find_definition(call: Call) -> FunctionDef:
    """The declaration behind a resolved call.

    Raises:
        InternalError: the call was not made by :func:`resolve_call`.
        NotSupportedYetError: a user's function, which no kernel runs, stands where only kernels do.
    """
    python = called_function(call)
    if python is not None:
        raise NotSupportedYetError(f"the Python function {python.name} in this place", call.span)
    types = [arg.type for arg in call.args]
    for definition in _overloads(call.function) or ():
        if definition.kernel is None or definition.signature.matches(types) is None:
            continue
        if definition.returns is None or _is_derived(definition.returns, call):
            return definition
    raise InternalError(f"no kernel for {call.function}({', '.join(str(type_) for type_ in types)})")


def _is_derived(returns: ResultRule, call: Call) -> bool:
    try:
        return returns(call.args, dict(call.options)) is not None
    except BindError:
        # What is refused as a constant was computed by folding: it fails when a row needs it.
        return True


def implicit_cast(expr: Expr, target: t.LogicalType) -> Expr:
    """The expression as ``target`` (nullability apart), with a cast only where the representation differs."""
    source = t.without_attribute(expr.type)
    plain = t.without_attribute(target)
    if source.same(plain):
        return expr
    if isinstance(expr, Literal) and expr.value is None:
        return replace(expr, type=target.as_nullable())
    return Cast(expr, plain.as_nullable(expr.type.nullable), implicit=True, span=expr.span)


def resolve_cast(expr: Expr, target: t.LogicalType, safe: bool, span: Span | None = None) -> Expr:
    """CAST or TRY_CAST as written.

    Raises:
        BindError: the pair of types has no cast.
    """
    source = expr.type
    numeric_time = isinstance(source, t.NumericType) and isinstance(target, t.TimestampType | t.TimestampLtzType)
    if numeric_time:
        local = isinstance(target, t.TimestampLtzType)
        raise BindError(
            "cast-not-allowed",
            f"The cast from NUMERIC type to {'TIMESTAMP_LTZ' if local else 'TIMESTAMP'} type is not allowed. It's "
            f"recommended to use {'TO_TIMESTAMP_LTZ(numeric_col, precision)' if local else _SECONDS_HINT} instead, "
            "note the numeric is in seconds.",
            span,
        )
    if not explicit_cast_allowed(source, target):
        raise BindError(
            "cast-not-allowed",
            f"Cast function cannot convert value of type {summary(source)} to type {summary(target)}",
            span,
        )
    made = target.as_nullable(source.nullable or safe)
    match expr:
        case Cast(operand=Literal() as number, safe=False, implicit=False) if (
            not safe
            and isinstance(source, t.ApproximateType | t.DecimalType)
            and isinstance(target, t.NumericType)
            and isinstance(number.type, t.NumericType)
        ):
            # A number that is written keeps its digits through casts: CAST(CAST(0.1 AS FLOAT) AS DOUBLE) is 0.1.
            expr = number
    if isinstance(expr, Literal) and expr.value is None:
        return Literal(None, target.as_nullable(), span)
    return Cast(expr, made, safe, False, span)


_SECONDS_HINT = "TO_TIMESTAMP(FROM_UNIXTIME(numeric_col))"


def resolve_case(
    conditions: tuple[Expr, ...], results: tuple[Expr, ...], otherwise: Expr, span: Span | None = None
) -> Case:
    """A searched CASE over bound parts: results meet in one type.

    Raises:
        BindError: a condition is not BOOLEAN, or the results have no common type.
    """
    for condition in conditions:
        if not isinstance(condition.type, t.BooleanType | t.NullType):
            raise BindError("not-a-condition", "WHEN clause must be a condition", condition.span or span)
    branches = (*results, otherwise)
    kinds = {_date_kind(branch.type) for branch in branches}
    type_ = branch_type([branch.type for branch in branches], in_order=True)
    if type_ is None or {"date", "timestamp"} <= kinds:
        raise BindError("case-types", "Illegal mixing of types in CASE or COALESCE statement", span)
    if isinstance(type_, t.NullType):
        raise BindError("case-types", "ELSE clause or at least one THEN clause must be non-NULL", span)
    typed = [branch.type for branch in branches if not isinstance(branch.type, t.NullType)]
    if len(typed) < len(branches) and t.is_nested(type_) and len({_shape(one) for one in typed}) == 1:
        # Beside a bare NULL, Flink takes the last branch for what all are.
        type_ = typed[-1]
    nullable = any(branch.type.nullable for branch in branches)
    cast = tuple(implicit_cast(branch, type_) for branch in branches)
    tests = tuple(implicit_cast(condition, t.BOOLEAN) for condition in conditions)
    return Case(tests, cast[:-1], cast[-1], type_.as_nullable(nullable), span)


def _shape(type_: t.LogicalType) -> str:
    """The type with all nullability left out."""
    return type_.text().replace(" NOT NULL", "")


def _date_kind(type_: t.LogicalType) -> str:
    match type_:
        case t.DateType():
            return "date"
        case t.TimestampType() | t.TimestampLtzType():
            return "timestamp"
    return ""


# Refusals


def _unknown(name: str, args: tuple[Expr, ...], span: Span | None) -> Exception:
    from flowsql_compute.functions.flink_names import FLINK_FUNCTIONS, INTERNAL_ARGUMENTS, NOT_IN_SQL

    if name in INTERNAL_ARGUMENTS:
        message = (
            f"Invalid number of arguments to function '{name}'. Was expecting {INTERNAL_ARGUMENTS[name]} arguments"
        )
        return BindError("argument-count", message, span)
    if " " in name and name in NOT_IN_SQL:
        return BindError("function-not-found", f"No match found for function signature {name}", span)
    if name in FLINK_FUNCTIONS - NOT_IN_SQL:
        return NotSupportedYetError(f"function {name}", span)
    shown = ", ".join(f"<{family_name(arg.type)}>" for arg in args)
    names = [known for known in function_names() if known[0].isalpha() and " " not in known]
    return BindError(
        "function-not-found",
        f"No match found for function signature {name}({shown})",
        span,
        did_you_mean(name, names),
    )


def _late_misfit(name: str, overloads: list[FunctionDef], args: tuple[Expr, ...], span: Span | None) -> BindError:
    """What Flink says of functions that it checks itself instead of the SQL parser's framework."""
    from flowsql_compute.functions.flink_names import NAMING_FAMILIES

    fitting = [d.signature for d in overloads if d.signature.accepts_count(len(args))]
    if not fitting:
        shown = ", ".join(f"<{family_name(arg.type)}>" for arg in args)
        hint = f"write {overloads[0].signature.form()}"
        return BindError("function-not-found", f"No match found for function signature {name}({shown}).", span, hint)
    hint = f"write {fitting[0].form()}"
    for place, arg in enumerate(args):
        family = FAMILIES[fitting[0].param(place)]
        if name in NAMING_FAMILIES and not isinstance(arg.type, family.members):
            wanted = {"CHARACTER": "CHARACTER_STRING", "INTEGER": "INTEGER_NUMERIC"}.get(family.shown, family.shown)
            return BindError(
                "argument-types",
                f"Unsupported argument type. Expected type of family '{wanted}' but actual type was '{arg.type}'.",
                arg.span or span,
                hint,
            )
    return BindError("argument-types", "Invalid input arguments.", span, hint)


def _misfit(name: str, overloads: list[FunctionDef], args: tuple[Expr, ...], span: Span | None) -> BindError:
    from flowsql_compute.functions.flink_names import LATE_CHECKED

    if name in LATE_CHECKED and not any(isinstance(arg.type, t.NullType) for arg in args):
        return _late_misfit(name, overloads, args, span)
    if not any(definition.signature.accepts_count(len(args)) for definition in overloads):
        expected = overloads[0].signature.required
        return BindError(
            "argument-count",
            f"Invalid number of arguments to function '{name}'. Was expecting {expected} arguments",
            span,
            f"write {overloads[0].signature.form()}",
        )
    if any(isinstance(arg, Literal) and isinstance(arg.type, t.NullType) for arg in args):
        return BindError("illegal-null", "Illegal use of 'NULL'", span, "write CAST(NULL AS <type>)")
    fitting = [d for d in overloads if d.signature.accepts_count(len(args))]
    shown = call_text(name, [f"<{summary(arg.type)}>" for arg in args])
    forms = "\n".join(f"'{form}'" for form in dict.fromkeys(d.signature.form() for d in fitting))
    return BindError(
        "argument-types",
        f"Cannot apply '{name}' to arguments of type '{shown}'. Supported form(s): {forms}",
        span,
    )
