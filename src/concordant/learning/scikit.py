"""scikit-learn's conventions, with scikit-learn (the extra ``sklearn``) and without it.

To import it takes longer than most fits, and rankers need little of it. In a process that has loaded it, as one that
takes rankers from ``concordant`` has where it is installed, they are its estimators; else (the command, an installation
without it) they keep its conventions by themselves: ``get_params``, ``set_params``, ``clone``, fitted or not.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import sys
from typing import Any, Self

from concordant.errors import Unavailable

__all__ = ["BaseEstimator", "NotFittedError", "check_is_fitted", "clone", "exactly", "is_a", "needed", "takes"]

if "sklearn" in sys.modules:
    from sklearn.base import BaseEstimator, clone
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted
else:

    class NotFittedError(ValueError, AttributeError):  # type: ignore[no-redef]
        """What is to be fitted first was asked for something."""

    class BaseEstimator:  # type: ignore[no-redef]
        """Parameters are what ``__init__`` takes, kept under their names; what is learned has names that end in _."""

        @classmethod
        def _get_param_names(cls) -> list[str]:
            kinds = inspect.signature(cls.__init__).parameters.values()
            return sorted(one.name for one in kinds if one.name != "self" and one.kind != one.VAR_KEYWORD)

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the parameters, with ``deep`` those of parameters that have some, too, as name__theirs."""
            found: dict[str, Any] = {}
            for name in self._get_param_names():
                found[name] = value = getattr(self, name)
                if deep and hasattr(value, "get_params") and not isinstance(value, type):
                    found |= {f"{name}__{theirs}": of for theirs, of in value.get_params().items()}
            return found

        def set_params(self, **params: Any) -> Self:
            """Set parameters. Errors (ValueError): there is no such parameter."""
            for name, value in params.items():
                own, _, theirs = name.partition("__")
                if own not in self._get_param_names():
                    raise ValueError(f"invalid parameter {own!r} of {self}; valid are {self._get_param_names()}")
                if theirs:
                    getattr(self, own).set_params(**{theirs: value})
                else:
                    setattr(self, own, value)
            return self

        def __repr__(self) -> str:
            usual = inspect.signature(type(self).__init__).parameters
            given = {name: getattr(self, name) for name in usual if name != "self"}
            said = [f"{name}={value!r}" for name, value in given.items() if repr(value) != repr(usual[name].default)]
            return f"{type(self).__name__}({', '.join(said)})"

        def __sklearn_tags__(self) -> Any:
            tags = importlib.import_module("sklearn.utils")
            return tags.Tags(estimator_type=None, target_tags=tags.TargetTags(required=False))

    def clone(estimator: Any) -> Any:
        """Return an unfitted estimator with the same parameters."""
        if not hasattr(estimator, "get_params") or isinstance(estimator, type):
            return copy.deepcopy(estimator)
        if hasattr(estimator, "__sklearn_clone__"):
            return estimator.__sklearn_clone__()
        params = {name: clone(value) for name, value in estimator.get_params(deep=False).items()}
        return type(estimator)(**params)

    def check_is_fitted(estimator: Any, attributes: str | None = None) -> None:
        """Raise NotFittedError where nothing was learned, or this was not."""
        if hasattr(estimator, "__sklearn_is_fitted__"):
            fitted = estimator.__sklearn_is_fitted__()
        elif attributes is not None:
            fitted = hasattr(estimator, attributes)
        else:
            fitted = any(name.endswith("_") and not name.startswith("__") for name in vars(estimator))
        if not fitted:
            raise NotFittedError(
                f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments "
                "before using this estimator."
            )


def needed(module: str, what: str) -> Any:
    """Return a module of scikit-learn. Errors (Unavailable): it is not installed, and ``what`` needs it."""
    try:
        return importlib.import_module(f"sklearn.{module}")
    except ImportError:
        raise Unavailable(f"{what} needs scikit-learn: pip install 'concordant[sklearn]'") from None


def is_a(value: Any, *names: str) -> bool:
    """Whether a value is of a class of scikit-learn with one of the names, or of one derived from it."""
    return any(kind.__module__.startswith("sklearn.") and kind.__name__ in names for kind in type(value).__mro__)


def exactly(value: Any, *names: str) -> bool:
    """Whether a value is of a class of scikit-learn with one of the names itself."""
    return type(value).__module__.startswith("sklearn.") and type(value).__name__ in names


def takes(estimator: Any, parameter: str) -> bool:
    """Whether ``fit`` of an estimator takes a parameter."""
    return parameter in inspect.signature(estimator.fit).parameters
