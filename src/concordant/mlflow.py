"""Rankers as models of MLflow: ``pip install "concordant[mlflow]"``, then ``from concordant import mlflow as cm``.

A model is kept as ``save_model`` keeps it (JSON and plain arrays, no pickle) in a folder of MLflow's, with the flavours
``concordant`` and ``python_function``; so ``mlflow.pyfunc.load_model(…).predict(table)`` gives a score for each row.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from concordant import __version__
from concordant.apps.models.saving import load_model as load_ranker
from concordant.apps.models.saving import save_model as save_ranker
from concordant.errors import InputError, Unavailable, UsageError, few

__all__ = ["load_model", "log_model", "save_model"]

FLAVOUR, DATA = "concordant", "model"
REQUIREMENTS = [f"concordant=={__version__}"]


def _mlflow() -> Any:
    """Return MLflow. Errors (Unavailable): it is not installed."""
    try:
        with warnings.catch_warnings():  # of its own types, as it is imported
            warnings.simplefilter("ignore", UserWarning)
            import mlflow
            import mlflow.pyfunc
    except ModuleNotFoundError as missing:
        raise Unavailable(
            f'concordant.mlflow needs MLflow ({missing.name} is not installed): pip install "concordant[mlflow]"'
        ) from None
    return mlflow


def save_model(
    ranker: Any,
    path: str | os.PathLike[str],
    *,
    mlflow_model: Any = None,
    signature: Any = None,
    metadata: dict[str, Any] | None = None,
    pip_requirements: list[str] | None = None,
) -> None:
    """Write a fitted ranker, or a model that ``concordant fit`` kept (its directory), as a folder of MLflow's.

    Parameters
    ----------
    ranker : a fitted ranker, or the directory of one.
    path : where to; it must not exist.
    signature, metadata, pip_requirements : as MLflow takes them.
    mlflow_model : what MLflow hands over when it logs the model.

    Errors: Unavailable without MLflow; UsageError for a path that is there, and those of ``concordant.save_model``.
    """
    mlflow, target = _mlflow(), Path(path)
    if target.exists() and any(target.iterdir()):
        raise UsageError(f"{target} is there already; name another folder")
    target.mkdir(parents=True, exist_ok=True)
    ranker = load_ranker(ranker) if isinstance(ranker, str | os.PathLike) else ranker
    save_ranker(ranker, target / DATA)
    model = mlflow_model or mlflow.models.Model()
    model.signature, model.metadata = signature or model.signature, metadata or model.metadata
    hashed = load_ranker(target / DATA).origin_["hash"]
    model.add_flavor(FLAVOUR, data=DATA, version=__version__, ranker=type(ranker).__name__, sha256=hashed)
    mlflow.pyfunc.add_to_model(model, loader_module="concordant.mlflow", data=DATA, env=None)
    model.save(str(target / "MLmodel"))
    (target / "requirements.txt").write_text("\n".join(pip_requirements or REQUIREMENTS) + "\n", encoding="utf-8")


def log_model(ranker: Any, name: str, **more: Any) -> Any:
    """Log a fitted ranker, or the directory of one, in the run of MLflow that is active; return its ``ModelInfo``.

    ``more`` is as ``mlflow.models.Model.log`` and ``save_model`` take it, such as ``registered_model_name``.
    """
    return _mlflow().models.Model.log(artifact_path=None, name=name, flavor=_This, ranker=ranker, **more)


def load_model(uri: str, dst_path: str | None = None) -> Any:
    """Return the ranker of a model of MLflow: a folder, ``runs:/…`` or ``models:/…``; loaded as ``load_model`` does."""
    folder = _mlflow().artifacts.download_artifacts(artifact_uri=uri, dst_path=dst_path)
    return load_ranker(Path(folder) / DATA)


class _This:
    """What ``Model.log`` asks of a flavour."""

    __name__ = __name__
    save_model = staticmethod(save_model)


class _Scorer:
    """What ``mlflow.pyfunc`` wraps: a score for each row of a table of features."""

    def __init__(self, ranker: Any) -> None:
        self.ranker = ranker

    def predict(self, table: Any, params: Any = None) -> Any:
        """Return a score for each row; higher is better. Of a table those columns are read that the model knows.

        Columns by their names, and rows as mappings, are a table, too. Errors (InputError): columns that are not there.
        """
        names = getattr(self.ranker, "feature_names_in_", None)
        if isinstance(table, dict) or (isinstance(table, list) and table and isinstance(table[0], dict)):
            table = import_module("pandas").DataFrame(table)
        if names is None or not hasattr(table, "columns"):
            return self.ranker.predict(table)
        if missing := [name for name in names if name not in table.columns]:
            raise InputError(f"the table has no column {few(missing)}, which the model was fitted to")
        keys = [name for name in ("query", "item") if name in table.columns]
        chosen = table[[*keys, *names]]
        return self.ranker.predict(chosen if "item" in keys else chosen.assign(item=range(len(chosen))))

    def get_raw_model(self) -> Any:
        """Return the ranker itself."""
        return self.ranker


def _load_pyfunc(path: str) -> _Scorer:
    """Return what ``mlflow.pyfunc.load_model`` wraps."""
    return _Scorer(load_ranker(path))
