"""Writes `gong/llm/data/prices.json` from genai-prices' JSON, one model in a line.

python -m tests.gong.llm.price_snapshot FILE
"""

import json
import sys
from pathlib import Path

from gong.llm.models import load_presets
from gong.llm.price_lists import SHIPPED, PriceLists
from gong.llm.price_refresh import check_lists

NO_LISTS = PriceLists({})


def render_snapshot(data: bytes) -> str:
    """Return the lists of the hosts that presets name, and of no other."""
    names = {preset.price_list or name for name, preset in load_presets({}).items()}
    hosts = sorted(check_lists(data, NO_LISTS, names).hosts, key=lambda host: host.id)
    return "[\n" + ",\n".join(map(render_host, hosts)) + "\n]\n"


def render_host(host) -> str:
    facts = {"id": host.id}
    if host.fallback_model_providers:
        facts["fallback_model_providers"] = host.fallback_model_providers
    models = [
        json.dumps(model, separators=(",", ":"), ensure_ascii=False)
        for model in json.loads(bytes(host.models))
    ]
    return json.dumps(facts)[:-1] + ', "models": [\n' + ",\n".join(models) + "\n]}"


if __name__ == "__main__":
    SHIPPED.write_text(render_snapshot(Path(sys.argv[1]).read_bytes()), "utf-8")
