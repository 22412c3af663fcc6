"""What all tests share: where real data lies, and how hypothesis runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sklearn.base  # rankers are its estimators in a process that has loaded it
from hypothesis import HealthCheck, core, settings
from packaging.version import Version

from dealing import Dealing
from seeds import GIVEN, seed
from spark_session import spark

__all__ = ["spark"]
ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("CONCORDANT_SHARED", ROOT.parent / "shared" / "data"))
SMALL = ROOT / "tests" / "data"

os.environ.setdefault(
    "SPARK_CONF_DIR", str(ROOT / "tests" / "spark_conf")
)  # for commands that start a Spark of their own

os.environ["CONCORDANT_DURATIONS"] = ""  # what earlier runs took is another test's

settings.register_profile("fixed", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("drawn", settings.get_profile("fixed"), derandomize=False, print_blob=True)
settings.load_profile("fixed" if GIVEN is None else "drawn")

OTHER_TREES = (
    ""
    if Version(sklearn.__version__) >= Version("1.9")
    else f"figures of scikit-learn 1.9; weighted forests and binned trees of {sklearn.__version__} are others"
)
"""Why figures of pages that come from trees are not these here; empty where they are."""


def pytest_configure() -> None:
    if GIVEN is not None:
        core.global_force_seed = seed(0)


FIRST = (
    "test_page_runs[docs/spark]",  # Java keeps the folder in which it starts, and the page names files in its own
    "test_spark_",
    "test_distribution",
    "test_store_crashes",
    "test_page_runs",
    "test_site_is_built",
    "test_demo_",
)
"""The longest of what one process does, so that no other process waits for it in the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: next((place for place, name in enumerate(FIRST) if name in item.nodeid), len(FIRST)))


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist there is nothing to deal
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Dealing:
    return Dealing(config, log)


def pytest_report_header() -> str:
    return "examples: the same in every run" if GIVEN is None else f"examples: drawn from CONCORDANT_SEED={GIVEN}"


def shared_data(name: str) -> Path:
    """Return the path of a data set that may not be shipped, or skip the test, saying why.

    The folder ``../shared/data`` beside the repository is used, or the one that ``CONCORDANT_SHARED`` names.
    """
    path = SHARED / name
    if not path.exists():
        reason = f"real data {name!r} is not shipped and not in {SHARED} (CONCORDANT_SHARED says where it is)"
        pytest.skip(reason, allow_module_level=True)
    return path


@pytest.fixture(name="shared_data")
def _shared_data() -> Callable[[str], Path]:
    return shared_data


@pytest.fixture(scope="session")
def small_data() -> Path:
    """Return the folder of small real data that lie in the repository with their licences."""
    return SMALL
