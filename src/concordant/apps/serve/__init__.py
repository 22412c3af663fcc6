"""A fitted ranker behind HTTP: score, rank, compare, with limits on what a client may send (extra ``[serve]``).

``app.create_app`` makes a FastAPI application of a ranker and its features, to be mounted or tested; ``running``
answers with it until it is told to stop. Nothing a client sends names a file, a model or code.
"""

from __future__ import annotations

import importlib.util

from concordant.errors import Unavailable

MISSING = [name for name in ("fastapi", "uvicorn", "httptools") if importlib.util.find_spec(name) is None]
if MISSING:
    raise Unavailable(f'serving needs {", ".join(MISSING)}, which is not installed: pip install "concordant[serve]"')
