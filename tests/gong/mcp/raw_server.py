"""A server that answers what a file says, right or wrong: `python raw_server.py ANSWERS.json`.

The file has the result of each method, and below "tools/call" the result of each tool. A method
that is not in it is not known.
"""

import json
import sys
from pathlib import Path

answers = json.loads(Path(sys.argv[1]).read_bytes())
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params") or {}
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        has = {part: {} for part in ("tools", "prompts", "resources") if f"{part}/list" in answers}
        about = {"name": "raw", "version": "1"}
        version = params["protocolVersion"]
        answer["result"] = {"protocolVersion": version, "capabilities": has, "serverInfo": about}
    elif method == "tools/call":
        given = answers[method].get(params["name"])
        echoed = {"content": [{"type": "text", "text": json.dumps(params["arguments"])}]}
        answer["result"] = given or echoed
    elif method in answers:
        answer["result"] = answers[method]
    else:
        answer["error"] = {"code": -32601, "message": "Method not found"}
    print(json.dumps(answer), flush=True)
