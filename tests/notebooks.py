"""The notebooks of the documentation: their cells run here; ``python tests/notebooks.py`` writes the outputs.

A cell runs as in Jupyter: the value of its last line is shown, as HTML where it has ``_repr_html_``, else by ``repr``.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def run(path: Path) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Run the cells of a notebook from the folder where it lies; return each code cell with its outputs."""
    from matplotlib import pyplot

    scope: dict[str, Any] = {"__name__": "__main__"}
    before = os.getcwd()
    os.chdir(path.parent)
    pyplot.close("all")  # what somebody else left open is not of this notebook
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return [(cell, _outputs("".join(cell["source"]), scope)) for cell in cells if cell["cell_type"] == "code"]
    finally:
        pyplot.close("all")
        os.chdir(before)


def _outputs(source: str, scope: dict[str, Any]) -> list[dict[str, Any]]:
    from matplotlib import pyplot

    body = ast.parse(source).body
    said, value = io.StringIO(), None
    with contextlib.redirect_stdout(said):
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), "cell", "exec"), scope)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), scope)
    found = []
    if said.getvalue():
        found.append({"output_type": "stream", "name": "stdout", "text": said.getvalue().splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": [repr(value)]}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = [value._repr_html_()]
        found.append({"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data})
    for number in pyplot.get_fignums():
        image = io.BytesIO()
        pyplot.figure(number).savefig(image, format="png", dpi=70)
        pyplot.close(number)
        data = {"image/png": base64.b64encode(image.getvalue()).decode(), "text/plain": ["<Figure>"]}
        found.append({"output_type": "display_data", "metadata": {}, "data": data})
    return found


def main() -> None:
    """Write into each notebook what its cells show now."""
    for path in map(Path, sys.argv[1:] or NOTEBOOKS):
        book = json.loads(path.read_text(encoding="utf-8"))
        shown = [outputs for _, outputs in run(path.resolve())]
        for cell, outputs in zip([one for one in book["cells"] if one["cell_type"] == "code"], shown, strict=True):
            cell["outputs"] = outputs
        path.write_text(json.dumps(book, ensure_ascii=False, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
