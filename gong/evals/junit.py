"""Results of a run as JUnit XML, which CI servers read. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, tostring

from .result import MEANINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .result import TryResult

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def build_junit(name: str, results: Sequence[TryResult]) -> str:
    """Return results as JUnit XML: a test case for each try; what XML cannot hold is U+FFFD."""
    failed = sum(result.outcome == "failed" for result in results)
    counts = {
        "tests": str(len(results)),
        "failures": str(failed),
        "errors": str(sum(result.is_error for result in results)),
        "time": f"{sum(r.agent_seconds + r.verifier_seconds for r in results):.3f}",
    }
    root = Element("testsuites", {"name": "gong eval", **counts})
    suite = SubElement(root, "testsuite", {"name": _clean_xml(name), **counts})
    for result in results:
        case = SubElement(
            suite,
            "testcase",
            {
                "classname": _clean_xml(result.task),
                "name": _clean_xml(f"{result.task} #{result.number}"),
                "time": f"{result.agent_seconds + result.verifier_seconds:.3f}",
            },
        )
        facts = {"tape": result.tape, "model": result.model, "turns": str(result.turns)}
        properties = SubElement(case, "properties")
        for key, value in facts.items():
            SubElement(properties, "property", {"name": key, "value": _clean_xml(value)})
        if not result.is_solved:
            kind = "error" if result.is_error else "failure"
            reward = "" if result.reward is None else f"reward {result.reward:g}"
            message = _clean_xml(result.detail or reward or MEANINGS[result.outcome])
            SubElement(case, kind, {"type": result.outcome, "message": message})
    text: str = tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _clean_xml(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
