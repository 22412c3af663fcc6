"""ONNX: one graph from features as they are given, float64, to scores; normaliser and missing values are in it."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

import concordant
from concordant.apps.export.terms import Terms
from concordant.apps.models.regressors import Network, Trees
from concordant.errors import Unavailable, UsageError

try:
    import onnx
    import onnx.compose
    import skl2onnx
    import skl2onnx.common.data_types
    from onnx import TensorProto, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator
    from sklearn.neighbors._base import NeighborsBase
    from sklearn.svm import SVR, NuSVR
except ModuleNotFoundError as missing:
    raise Unavailable(
        f"ONNX needs the package {missing.name}, which is not installed: pip install 'concordant[onnx]'"
    ) from None


Floats = NDArray[np.float64]
OPSET, TREES_OPSET, IR = 18, 5, 10
"""Versions of the operators and of the file: those of onnx 1.16; TreeEnsemble in float64 came with opset 5."""
ACTIVATIONS = {"relu": "Relu", "tanh": "Tanh", "logistic": "Sigmoid"}
CLOSE = 1e-6


class Graph:
    """Nodes and constants of a graph, each with a name of its own."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any, kind: type = np.float64) -> str:
        """Return the name of a constant tensor."""
        name = f"constant-{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def add(self, operator: str, *inputs: str, output: str | None = None, domain: str = "", **attributes: Any) -> str:
        """Add a node and return the name of what it gives."""
        name = output or f"{operator}-{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], domain=domain, **attributes))
        return name


def onnx_bytes(terms: Terms, name: str) -> bytes:
    """Return the file: input ``features`` (rows, features) float64, output ``scores`` (rows,) float64.

    A row with a missing value has score NaN where the ranker allows none. ``metadata_props`` holds the names of the
    features in order. Errors (UsageError): a regressor that skl2onnx has no converter for, or none that agrees.
    """
    graph = Graph()
    width = len(terms.names)
    z = _normalised(graph, terms)
    parts: list[str] = []
    if terms.weights is not None:
        known = _where_missing(graph, z, 0.0) if terms.missing == "keep" else z
        parts.append(_product(graph, known, terms.weights[:, None]))
    if terms.trees is not None:
        parts.append(_trees(graph, terms.trees, width))
    if terms.network is not None:
        parts.append(_network(graph, terms.network, z))
    opsets = {"": OPSET} | ({} if terms.trees is None else {"ai.onnx.ml": TREES_OPSET})
    if terms.foreign is not None:
        parts.append(_foreign(graph, terms, z, opsets))
    total = parts[0]
    for part in parts[1:]:
        total = graph.add("Add", total, part)
    if terms.intercept:
        total = graph.add("Add", total, graph.constant(terms.intercept))
    if terms.missing == "raise":
        total = _refused(graph, total)
    graph.add("Reshape", total, graph.constant([-1], np.int64), output="scores")
    made = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "concordant",
            [helper.make_tensor_value_info("features", TensorProto.DOUBLE, ["rows", width])],
            [helper.make_tensor_value_info("scores", TensorProto.DOUBLE, ["rows"])],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in opsets.items()],
        ir_version=IR,
        producer_name="concordant",
        producer_version=concordant.__version__,
        doc_string=f"{name}: {terms.ranker}. Higher scores are better; only differences within a query mean something.",
    )
    facts = {"features": list(terms.names), "missing": terms.missing, "concordant": concordant.__version__}
    helper.set_model_props(
        made, {key: fact if isinstance(fact, str) else json.dumps(fact) for key, fact in facts.items()}
    )
    onnx.checker.check_model(made, full_check=True)
    return bytes(made.SerializeToString())


def _normalised(graph: Graph, terms: Terms) -> str:
    """z of the features; what only trees look at needs none."""
    if terms.weights is None and terms.network is None and terms.foreign is None:
        return "features"
    values = _signed_log(graph) if terms.log else "features"
    if terms.missing == "fill":
        values = graph.add("Where", graph.add("IsNaN", "features"), graph.constant(terms.fill), values)
    if terms.mean.any():
        values = graph.add("Sub", values, graph.constant(terms.mean))
    if (terms.scale != 1).any():
        values = graph.add("Div", values, graph.constant(terms.scale))
    return values


def _signed_log(graph: Graph) -> str:
    """sign(x) · log(1 + |x|); with u = 1 + |x|, log(u) · |x| / (u − 1), or |x| where u is 1, loses no digits."""
    size, one = graph.add("Abs", "features"), graph.constant(1.0)
    above = graph.add("Add", size, one)
    excess = graph.add("Sub", above, one)
    tiny = graph.add("Equal", excess, graph.constant(0.0))
    ratio = graph.add("Div", size, graph.add("Where", tiny, one, excess))
    log = graph.add("Where", tiny, size, graph.add("Mul", graph.add("Log", above), ratio))
    return graph.add("Mul", graph.add("Sign", "features"), log)


def _product(graph: Graph, rows: str, matrix: Floats) -> str:
    """rows · matrix. No scalar may stand beside a MatMul: onnxruntime fuses the two and makes it float32."""
    return graph.add("Mul" if len(matrix) == 1 else "MatMul", rows, graph.constant(matrix))


def _where_missing(graph: Graph, values: str, fill: float) -> str:
    return graph.add("Where", graph.add("IsNaN", values), graph.constant(fill), values)


def _refused(graph: Graph, total: str) -> str:
    """NaN for rows where a value is missing."""
    gaps = graph.add("Cast", graph.add("IsNaN", "features"), to=TensorProto.FLOAT)
    some = graph.add("ReduceMax", gaps, graph.constant([1], np.int64), keepdims=1)
    return graph.add("Where", graph.add("Cast", some, to=TensorProto.BOOL), graph.constant(np.nan), total)


def _trees(graph: Graph, trees: Trees, width: int) -> str:
    """Inner nodes and leaves are numbered apart; a tree of one leaf becomes part of the constant."""
    own = np.arange(len(trees.left))
    leaf = trees.left == own
    alone = leaf[trees.root]
    base = trees.base + float(trees.value[trees.root[alone]].sum())
    roots = trees.root[~alone]
    if len(roots) == 0:
        gaps = graph.add("Cast", graph.add("IsNaN", "features"), to=TensorProto.DOUBLE)  # finite, whatever the features
        return graph.add("Add", _product(graph, gaps, np.zeros((width, 1))), graph.constant(base))
    number = np.where(leaf, np.cumsum(leaf) - 1, np.cumsum(~leaf) - 1)
    inner = ~leaf

    def tensor(name: str, kind: int, values: NDArray[Any]) -> Any:
        return helper.make_tensor(name, kind, (len(values),), values)

    found = graph.add(
        "TreeEnsemble",
        "features",
        domain="ai.onnx.ml",
        n_targets=1,
        aggregate_function=1,  # the sum
        post_transform=0,
        tree_roots=number[roots].tolist(),
        nodes_featureids=trees.feature[inner].tolist(),
        nodes_modes=tensor("modes", TensorProto.UINT8, np.zeros(int(inner.sum()), np.uint8)),  # left when x ≤ split
        nodes_splits=tensor("splits", TensorProto.DOUBLE, trees.threshold[inner]),
        nodes_truenodeids=number[trees.left[inner]].tolist(),
        nodes_trueleafs=leaf[trees.left[inner]].astype(int).tolist(),
        nodes_falsenodeids=number[trees.right[inner]].tolist(),
        nodes_falseleafs=leaf[trees.right[inner]].astype(int).tolist(),
        nodes_missing_value_tracks_true=trees.missing_left[inner].astype(int).tolist(),
        leaf_targetids=np.zeros(int(leaf.sum()), int).tolist(),
        leaf_weights=tensor("weights", TensorProto.DOUBLE, trees.value[leaf]),
    )
    return graph.add("Add", found, graph.constant(base)) if base else found


def _network(graph: Graph, network: Network, z: str) -> str:
    hidden = z
    for place, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        hidden = graph.add("Add", _product(graph, hidden, weight), graph.constant(bias))
        if place + 1 < len(network.weights) and network.activation != "identity":
            hidden = graph.add(ACTIVATIONS[network.activation], hidden)
    return hidden


def _foreign(graph: Graph, terms: Terms, z: str, opsets: dict[str, int]) -> str:
    """Put in what a regressor of another package computes: our own formula for support vectors, else skl2onnx's."""
    if type(terms.foreign) in (NuSVR, SVR) and isinstance(terms.foreign.kernel, str):
        return _support_vectors(graph, terms.foreign, z, terms.unit)
    made, kind = _converted(terms)
    inside = onnx.compose.add_prefix(made, "inside-")
    graph.add("Cast", z, output=inside.graph.input[0].name, to=kind)
    graph.nodes.extend(inside.graph.node)
    graph.constants.extend(inside.graph.initializer)
    opsets |= {one.domain: one.version for one in inside.opset_import if one.domain not in opsets}
    wide = graph.add("Cast", inside.graph.output[0].name, to=TensorProto.DOUBLE)
    found = graph.add("Reshape", wide, graph.constant([-1, 1], np.int64))
    return graph.add("Mul", found, graph.constant(terms.unit)) if terms.unit != 1 else found


def _support_vectors(graph: Graph, machine: Any, z: str, unit: float) -> str:
    """unit · (Σ α_i K(s_i, z) + b) in float64, which ai.onnx.ml's SVMRegressor has not."""
    vectors = np.asarray(machine.support_vectors_, np.float64).T
    gamma = float(machine._gamma)
    if machine.kernel == "linear":
        kernel = _product(graph, z, vectors)
    elif machine.kernel == "rbf":
        norm = graph.add("ReduceSum", graph.add("Mul", z, z), graph.constant([1], np.int64), keepdims=1)
        norms = graph.add("Add", norm, graph.constant((vectors**2).sum(axis=0)))
        distance = graph.add("Sub", norms, _product(graph, z, 2 * vectors))
        kernel = graph.add("Exp", graph.add("Mul", distance, graph.constant(-gamma)))
    elif machine.kernel in ("poly", "sigmoid"):
        inside = graph.add("Add", _product(graph, z, gamma * vectors), graph.constant(float(machine.coef0)))
        power = [graph.constant(float(machine.degree))] if machine.kernel == "poly" else []
        kernel = graph.add("Pow" if power else "Tanh", inside, *power)
    else:
        raise UsageError(f"an {type(machine).__name__} with kernel {machine.kernel!r} cannot be exported to ONNX")
    found = _product(graph, kernel, np.asarray(machine.dual_coef_, np.float64).T * unit)
    return graph.add("Add", found, graph.constant(np.asarray(machine.intercept_, np.float64) * unit))


def _converted(terms: Terms) -> tuple[Any, int]:
    """skl2onnx's graph and the type of its input: float64, or float32 where operators have nothing else.

    Errors (UsageError): no converter, or none that agrees with ``predict`` to 1e-6 on 200 random rows.
    """
    regressor, width = terms.foreign, len(terms.names)
    kind = type(regressor).__name__
    parts = (regressor, *getattr(regressor, "get_params", dict)().values())
    if any(isinstance(part, NeighborsBase) for part in parts):
        raise UsageError(
            f"a {kind} cannot be exported to ONNX: which of two neighbours that are equally far counts depends on how "
            "they are searched, and scores would differ where it does"
        )
    types = skl2onnx.common.data_types
    said = ""
    for form, element in ((types.DoubleTensorType, TensorProto.DOUBLE), (types.FloatTensorType, TensorProto.FLOAT)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                opset = {"": OPSET, "ai.onnx.ml": 3}
                made = skl2onnx.convert_sklearn(
                    regressor, initial_types=[("z", form([None, width]))], target_opset=opset
                )
                onnx.checker.check_model(made, full_check=True)
                if element == TensorProto.DOUBLE and (single := _single(made)):
                    raise TypeError(f"onnxruntime has {', '.join(single)} in float32 only")
                apart = _apart(made, regressor, np.float64 if element == TensorProto.DOUBLE else np.float32)
        except Exception as error:  # the converters of others raise whatever they like
            said = f"{type(error).__name__}: {(str(error).strip() or 'no reason given').splitlines()[0]}"
            continue
        if apart <= CLOSE:
            return made, element
        said = f"what it makes is {apart:.1g} away from predict"
    raise UsageError(
        f"a {kind} cannot be exported to ONNX, as skl2onnx has no converter that fits ({said}); linear models, support "
        "vectors, networks and trees of scikit-learn, LightGBM and XGBoost can be"
    )


def _single(made: Any) -> list[str]:
    """Operators that onnxruntime does not have in float64."""
    there = {node.op_type for node in made.graph.node if node.domain == "ai.onnx.ml"}
    return sorted(there - {"ArrayFeatureExtractor"})


def _apart(made: Any, regressor: Any, kind: type) -> float:
    """Largest difference to ``predict`` on random rows, relative where it predicts above 1."""
    wide = made.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    Z = np.random.default_rng(0).normal(size=(200, wide)) * np.repeat([1.0, 3.0], 100)[:, None]
    Z = Z.astype(kind)
    run: Any = ReferenceEvaluator(made).run
    found = np.ravel(run(None, {made.graph.input[0].name: Z})[0])
    wanted = np.ravel(regressor.predict(Z.astype(np.float64)))
    return float((np.abs(found - wanted) / np.maximum(1.0, np.abs(wanted))).max())
