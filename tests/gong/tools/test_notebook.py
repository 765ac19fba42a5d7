import base64
import json

import nbformat
import pytest

from gong.tools.notebooks import OUTPUT_CHARS, render_notebook
from tape.model.entries import join_texts


def code(*outputs, source="x"):
    return {"cell_type": "code", "source": source, "outputs": list(outputs)}


def shown(*cells):
    return render_notebook(json.dumps({"cells": cells, "nbformat": 4}).encode()).text


async def test_a_notebook_is_read_as_its_cells(use, folder):
    """M066"""
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "words"]},
        code({"output_type": "execute_result", "data": {"text/plain": "2"}}, source="1 + 1"),
    ]
    (folder / "a.ipynb").write_text(json.dumps({"cells": cells}))
    text = "# [1] markdown\n# Title\nwords\n\n# [2] code\n1 + 1\n# [2] output\n2\n"
    assert join_texts((await use("read", path="a.ipynb")).content) == text
    page = await use("read", path="a.ipynb", offset=5, limit=1)
    assert join_texts(page.content) == (
        "# [2] code\n\n[3 more lines in file. Use offset=6 to continue.]"
    )


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ({"output_type": "stream", "text": ["a\n", "b\n"]}, "a\nb"),
        ({"output_type": "error", "ename": "KeyError", "evalue": "'a'"}, "KeyError: 'a'"),
        ({"data": {"text/html": "<b>", "text/plain": ["<A>\n", "<B>"]}}, "<A>\n<B>"),
        ({"data": {"image/png": "iVBO", "text/plain": "<Figure>"}}, "<Figure>\n[image/png]"),
        ({"data": {"application/json": {"a": 1}}}, '{"a": 1}'),
        ({"text": "\x1b[1;31mred\x1b[0m"}, "red"),
        ({"text": "x" * (OUTPUT_CHARS + 7)}, "x" * OUTPUT_CHARS + "\n[... 7 more characters]"),
    ],
)
def test_outputs_are_shown_in_brief(output, said):
    """M066"""
    assert shown(code(output)) == f"# [1] code\nx\n# [1] output\n{said}\n"


def test_an_output_that_says_nothing_is_left_out():
    assert shown(code({"output_type": "stream", "text": ""}, {})) == "# [1] code\nx\n"


def test_the_third_version_is_read_too():
    cell = {"cell_type": "code", "input": "a", "outputs": [{"text": "b"}]}
    old = {"nbformat": 3, "worksheets": [{"cells": [cell]}]}
    assert render_notebook(json.dumps(old).encode()).text == "# [1] code\na\n# [1] output\nb\n"


def test_pictures_of_the_third_version_are_pictures():
    """As nbformat writes it."""
    encoded = base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0").decode()
    v3 = nbformat.v3
    outputs = [v3.new_output("display_data", output_png=encoded, output_text="<Figure>")]
    cells = [v3.new_code_cell("plot()", outputs=outputs), v3.new_heading_cell("Head", level=2)]
    notebook = v3.new_notebook(worksheets=[v3.new_worksheet(cells=cells)])
    rendered = render_notebook(v3.writes_json(notebook).encode())
    assert rendered.text == (
        "# [1] code\nplot()\n# [1] output\n<Figure>\n[image/png]\n\n# [2] heading\nHead\n"
    )
    assert [picture.data[1:4] for picture in rendered.pictures] == [b"PNG"]


@pytest.mark.parametrize(
    "data", [b"", b"no json", b"[]", b'{"cells": 3}', b'{"cells": [{}]}', b"[" * 100_000, b"\xff"]
)
async def test_what_only_has_the_name_of_one_is_text(use, folder, data):
    assert render_notebook(data) is None
    (folder / "a.ipynb").write_bytes(data)
    result = await use("read", path="a.ipynb")
    assert not result.is_error
