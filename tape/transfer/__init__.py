"""Export and import: a tape as one file of JSON lines, as Markdown, or as a message array.

The file of an export, line by line (docs/export.md says it for people):

    {"export":1,"tape":{…tape.json…},"folder":"…"}      + "path" and "masked" where they apply
    {"blob":"<sha256>","data":"<base64>"}               each blob once; null where it is lost
    {"phase":"0001-main-start"}                         then its entry lines, byte for byte
    {"h":"…","branch":"main",…}                         the journal's lines, byte for byte
    {"end":{"entries":…,"phases":…,"blobs":…,"refs":…,"sha256":"…"}}

Phases stand in the order of their numbers; a fork's shared past is `0000-origin`. Only entry lines
have a member `type`.
"""

from __future__ import annotations

from ..exchange.arrays import ArrayImportReport, MessageArray, export_array, import_array
from ..exchange.export import ExportReport, export_tape
from ..exchange.import_ import ImportReport, import_file
from ..exchange.markdown import MaskCount, render_markdown
from ..exchange.secrets import mask_json, mask_text

__all__ = [
    "ArrayImportReport",
    "ExportReport",
    "ImportReport",
    "MaskCount",
    "MessageArray",
    "export_array",
    "export_tape",
    "import_array",
    "import_file",
    "mask_json",
    "mask_text",
    "render_markdown",
]
