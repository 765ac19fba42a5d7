import asyncio
import subprocess
import sys

import pytest

from gong.tools.documents import UnreadablePdf, extract_pdf_text
from tape.model.entries import join_texts


def pdf(*pages):
    """Return a PDF with a line of text on each page, or nothing on it for ""."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>"
        % (len(pages), b" ".join(b"%d 0 R" % (4 + 2 * n) for n in range(len(pages)))),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for n, text in enumerate(pages):
        drawn = b"BT /F1 12 Tf 72 720 Td (%s) Tj ET" % text.encode() if text else b""
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % (5 + 2 * n),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
        ]
    out, places = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\n"
        b"startxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table, len(objects) + 1, len(out))
    )


async def test_a_pdf_is_read_as_the_text_of_its_pages(use, folder):
    """M066: told by its bytes, and paged by lines like any text."""
    (folder / "paper.txt").write_bytes(pdf("First words", "Second words"))
    assert join_texts((await use("read", path="paper.txt")).content) == (
        "--- page 1 of 2 ---\n\nFirst words\n\n--- page 2 of 2 ---\n\nSecond words\n"
    )
    page = await use("read", path="paper.txt", offset=5, limit=1)
    assert join_texts(page.content) == (
        "--- page 2 of 2 ---\n\n[2 more lines in file. Use offset=6 to continue.]"
    )
    assert (page.details.encoding, page.details.line_count) == ("pdf", 7)


async def test_read_file_numbers_the_lines_of_a_pdf(use_face, folder):
    """M066"""
    (folder / "a.pdf").write_bytes(pdf("words"))
    said = join_texts((await use_face("read_file", file_path="a.pdf")).content)
    assert said == "  1 | --- page 1 of 1 ---\n  2 | \n  3 | words\n"


async def test_a_pdf_without_text_says_what_to_do(use, folder):
    (folder / "a.pdf").write_bytes(pdf("", ""))
    result = await use("read", path="a.pdf")
    assert result.is_error
    assert join_texts(result.content).endswith(
        " without text, 2 pages of pictures perhaps."
        " Make pictures of its pages with bash: pdftoppm -png FILE page, and read those."
    )


@pytest.mark.parametrize("end", [9, 100, 400])
async def test_a_damaged_pdf_is_an_error_in_words(use, folder, end, caplog):
    (folder / "a.pdf").write_bytes(pdf("words")[:end])
    result = await use("read", path="a.pdf")
    assert result.is_error
    assert join_texts(result.content).startswith("Cannot read a.pdf: it is a PDF of ")
    assert caplog.records == []


async def test_a_locked_pdf_is_an_error_in_words():
    from io import BytesIO  # with what is not always installed

    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(PdfReader(BytesIO(pdf("words"))))
    writer.encrypt("secret", algorithm="RC4-128")
    locked = BytesIO()
    writer.write(locked)
    with pytest.raises(UnreadablePdf, match="damaged or locked"):
        await extract_pdf_text("a.pdf", locked.getvalue())


async def test_cancelling_stops_it():
    running = asyncio.create_task(extract_pdf_text("a.pdf", pdf(*["words"] * 3000)))
    await asyncio.sleep(0.05)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def test_without_pypdf_the_result_says_how_to_install_it(tmp_path):
    """It is an extra: nothing else needs it."""
    (tmp_path / "a.pdf").write_bytes(pdf("words"))
    program = (
        "import asyncio, sys; sys.modules['pypdf'] = None\n"
        "from gong.env.local import LocalEnvironment\n"
        "from gong.tools import read, tool\n"
        "env = LocalEnvironment('.', {'PATH': ''})\n"
        "context = tool.ToolContext(env, 'c1', print)\n"
        "print(asyncio.run(read.run_read(read.ReadArguments('a.pdf'), context)).content[0].text)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == (
        "Cannot read a.pdf: it is a PDF of 580B, and pypdf is not installed:"
        " pip install 'gong[pdf]'. Or look into it with bash: pdftotext -layout FILE -\n"
    )
