"""One cell of a notebook changed: nbformat judges what comes out, and the rest stays as it was."""

import base64
import json

import pytest

from gong.env.protocol import FileUpdate
from gong.tools.known_files import KnownFiles
from gong.tools.notebooks import CannotEdit, CellEdit, edit_notebook, render_notebook
from gong.tools.tool import encode_details
from tape.model.entries import Image, join_texts

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def build_notebook(minor=5, **form):
    """Return a notebook as nbformat writes it: three cells, the second with outputs."""
    nbformat = pytest.importorskip("nbformat")
    v4 = nbformat.v4
    outputs = [
        v4.new_output("stream", name="stdout", text="räns\n"),
        v4.new_output("display_data", {"image/png": base64.b64encode(PIXEL).decode()}),
    ]
    cells = [
        v4.new_markdown_cell("# Title\n\nwords", id="intro"),
        v4.new_code_cell("x = 1\nprint(x)", id="run", execution_count=7, outputs=outputs),
        v4.new_code_cell("y = 'ä'", id="last", metadata={"tags": ["keep"]}),
    ]
    if minor < 5:
        for cell in cells:
            del cell["id"]
    notebook = v4.new_notebook(cells=cells, nbformat_minor=minor, metadata={"zeta": {"a": 1.50}})
    if form:
        return json.dumps(json.loads(nbformat.writes(notebook)), **form).encode()
    return (nbformat.writes(notebook) + "\n").encode()


def edit(data, mode="replace", cell="run", source="", kind=None):
    return edit_notebook(data, CellEdit(mode, cell, source, kind, new_id="0a1b2c3d"))


def read_valid(data):
    """Return the cells of a notebook that nbformat finds valid, and writes as the same bytes."""
    import nbformat

    notebook = nbformat.reads(data.decode(), as_version=4)
    nbformat.validate(notebook)
    assert (nbformat.writes(notebook) + "\n").encode() == data
    return notebook.cells


def test_a_replaced_cell_loses_its_outputs_and_the_rest_stays():
    """M196: NotebookEdit(notebook_path, cell_id, new_source)."""
    before = build_notebook()
    change = edit(before, source="z = 3\nprint(z)")
    cells = read_valid(change.data)
    assert (change.cell, change.old_source) == ("run", "x = 1\nprint(x)")
    assert cells[1].source == "z = 3\nprint(z)"
    assert (cells[1].outputs, cells[1].execution_count, cells[1].id) == ([], None, "run")
    start = before.index(b'"cell_type": "code"')
    assert change.data[:start] == before[:start]
    end = before.index(b'"cell_type": "code"', start + 1)
    assert change.data.endswith(before[end:])


@pytest.mark.parametrize(("cell", "place"), [("", 0), ("intro", 1), ("run", 2), ("last", 3)])
@pytest.mark.parametrize("kind", ["code", "markdown"])
def test_a_cell_is_inserted_after_another_and_deleted_again(cell, place, kind):
    before = build_notebook()
    change = edit(before, "insert", cell, "new\nwords\n", kind)
    cells = read_valid(change.data)
    assert len(cells) == 4
    assert (cells[place].id, cells[place].cell_type) == ("0a1b2c3d", kind)
    assert cells[place].source == "new\nwords\n"
    assert edit(change.data, "delete", "0a1b2c3d").data == before


def test_all_cells_can_go_and_one_can_come():
    data = build_notebook()
    for cell in ("run", "intro", "last"):
        data = edit(data, "delete", cell).data
        read_valid(data)
    assert b'"cells": []' in data
    assert read_valid(edit(data, "insert", "", "first").data)[0].source == "first"


@pytest.mark.parametrize("source", ["", "one", "one\n", "\n", "a\n\nb", 'q"\\ü\t€😀', "\r\nx\ry"])
@pytest.mark.parametrize("cell", ["intro", "run", "last"])
def test_every_source_comes_back_as_it_was(cell, source):
    cells = read_valid(edit(build_notebook(), cell=cell, source=source).data)
    assert next(one for one in cells if one.id == cell).source == source


@pytest.mark.parametrize(("cell", "kind"), [("intro", "code"), ("run", "markdown")])
def test_the_type_of_a_cell_changes(cell, kind):
    cells = read_valid(edit(build_notebook(), cell=cell, source="new", kind=kind).data)
    changed = next(one for one in cells if one.id == cell)
    assert (changed.cell_type, changed.source) == (kind, "new")
    assert ("outputs" in changed) == (kind == "code")


@pytest.mark.parametrize(
    "form",
    [
        {"indent": 1}, {"indent": 2}, {"indent": 4}, {"indent": "\t"}, {"indent": None},
        {"separators": (",", ":")}, {"indent": 1, "ensure_ascii": False},
    ],
)  # fmt: skip
def test_other_ways_of_writing_are_kept(form):
    before = build_notebook(**form)
    after = edit(before, source="z").data
    expected = json.loads(before)
    expected["cells"][1] |= {"source": ["z"], "outputs": [], "execution_count": None}
    written = json.dumps(expected, **form).encode()
    if form.get("separators"):
        assert json.loads(after) == expected
    else:
        assert after == written
    assert edit(edit(before, "insert", "intro", "n").data, "delete", "0a1b2c3d").data == before


def test_line_ends_of_windows_are_kept():
    before = build_notebook().replace(b"\n", b"\r\n")
    after = edit(before, source="a\nb").data
    assert after.count(b"\n") == after.count(b"\r\n")
    assert json.loads(after)["cells"][1]["source"] == ["a\n", "b"]


def test_a_notebook_without_ids_is_edited_by_number():
    before = build_notebook(minor=4)
    change = edit(before, cell="2", source="z")
    assert read_valid(change.data)[1].source == "z"
    inserted = edit(before, "insert", "[3]", "end")
    cells = read_valid(inserted.data)
    assert (inserted.cell, cells[3].source, "id" in cells[3]) == ("4", "end", False)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "broken JSON"),
        (b'{"cells": [', "broken JSON"),
        (b'{"cells": [}', "broken JSON"),
        (b"[]", "broken JSON: no object"),
        (b"\xff", "not text in UTF-8"),
        (b"[" * 100_000, "broken JSON"),
        (b'{"nbformat": 3, "worksheets": []}', "it has format 3, and only format 4 is changed"),
        (b'{"cells": []}', "it has format None"),
        (b'{"nbformat": 4}', "it has no cells"),
        (b'{"nbformat": 4, "cells": {}}', "it has no cells"),
        (b'{"nbformat": 4, "cells": [1]}', "one of its cells is none"),
        (b'{"nbformat": 4, "cells": [{"cell_type": "code"}]}', "one of its cells is none"),
        (b'{"nbformat": 4, "cells": []}', "no cell 'run'; its cells are: none"),
    ],
)
def test_what_is_no_notebook_of_format_4_is_not_changed(data, why):
    with pytest.raises(CannotEdit, match=why.replace("[", r"\[")):
        edit(data, source="x")


def test_cells_that_are_not_found_are_named():
    data = build_notebook()
    for cell in ("nope", "9", "2", ""):
        with pytest.raises(CannotEdit, match="its cells are: intro, run, last"):
            edit(data, "delete", cell)
    with pytest.raises(CannotEdit, match="2 of its cells have the id run"):
        edit(data.replace(b'"id": "last"', b'"id": "run"'), source="x")
    with pytest.raises(CannotEdit, match="has this source already"):
        edit(data, source="x = 1\nprint(x)")


async def test_the_tool_changes_a_file_and_says_what_changed(use_face, folder):
    file = folder / "a.ipynb"
    file.write_bytes(build_notebook())
    for name in ("notebook_edit", "NotebookEdit"):
        result = await use_face(
            name, notebook_path="a.ipynb", cell_id="run", new_source=f"print('{name}')"
        )
        assert join_texts(result.content) == "Successfully replaced cell run of a.ipynb."
    details = json.loads(bytes(encode_details(result)))
    assert details["diff_lines"] == ["- 1 print('notebook_edit')", "+ 1 print('NotebookEdit')"]
    assert read_valid(file.read_bytes())[1].source == "print('NotebookEdit')"


async def test_the_tool_refuses_in_one_line_and_changes_nothing(use_face, folder):
    file = folder / "a.ipynb"
    for data, arguments, why in (
        (b"{}", {"cell_id": "a"}, "Cannot edit a.ipynb: it has format None"),
        (build_notebook(), {}, "Cannot edit a.ipynb: name the cell, cell_id is empty."),
        (build_notebook(), {"cell_id": "x"}, "it has no cell 'x'; its cells are: intro, run, last"),
    ):
        file.write_bytes(data)
        result = await use_face("notebook_edit", notebook_path="a.ipynb", **arguments)
        assert result.is_error
        assert why in join_texts(result.content)
        assert file.read_bytes() == data
    result = await use_face("notebook_edit", notebook_path="../a.ipynb", cell_id="x")
    assert result.kind == "PermissionDenied"
    result = await use_face("notebook_edit", notebook_path="none.ipynb", cell_id="x")
    assert result.kind == "FileNotFound"


async def test_a_notebook_that_was_not_read_is_not_changed(env, folder):
    from dataclasses import replace

    from gong.tools.notebook_edit import NotebookEditArguments, run_notebook_edit
    from gong.tools.tool import ToolContext

    data = build_notebook()
    (folder / "a.ipynb").write_bytes(data)
    context = ToolContext(env, "c1", lambda _: None, files=KnownFiles())
    arguments = NotebookEditArguments("a.ipynb", "x", "run")
    assert "read it first" in join_texts((await run_notebook_edit(arguments, context)).content)
    known = KnownFiles()
    known.note_changes([FileUpdate(str(folder / "a.ipynb"), None, data)])
    context = replace(context, files=known)
    assert not (await run_notebook_edit(arguments, context)).is_error
    again = NotebookEditArguments("a.ipynb", "y", "run")
    assert not (await run_notebook_edit(again, context)).is_error


async def test_pictures_of_outputs_are_read_as_pictures(use_face, folder):
    """M196: as many as the lines that are shown name."""
    (folder / "a.ipynb").write_bytes(build_notebook())
    for name, path in (("read", "path"), ("read_file", "file_path")):
        result = await use_face(name, **{path: "a.ipynb"})
        (picture,) = (block for block in result.content if isinstance(block, Image))
        assert picture.mime == "image/png"
        assert "[image/png]" in join_texts(result.content)
        assert "# [2] code id=run" in join_texts(result.content)
        page = await use_face(name, **{path: "a.ipynb", "limit": 3})
        assert not any(isinstance(block, Image) for block in page.content)


def test_a_picture_that_is_none_is_only_named():
    cell = {"cell_type": "code", "source": "", "outputs": [{"data": {"image/png": "!"}}]}
    for encoded in ("!", 3, "", ["a", 2]):
        cell["outputs"] = [{"data": {"image/png": encoded}}]
        rendered = render_notebook(json.dumps({"cells": [cell]}).encode())
        assert rendered.pictures == ()
        assert "[image/png]" in rendered.text
