"""A small MCP server of the older protocol, over standard input and output, that misbehaves on request.

`python mcp_stdio.py FILE`: FILE is JSON, `{"tools": {name: description}, "prompts": …}`, read at each start.
The name of a tool says what it does.
"""

import json
import os
import sys
import time
from pathlib import Path

_calls: list[str] = []


def _count(name: str) -> int:
    _calls.append(name)
    return _calls.count(name)


def _reply(name: str, args: dict) -> dict:
    match name:
        case "die":
            os._exit(7)
        case "slow":
            time.sleep(600)
        case "huge":
            return {"content": [{"type": "text", "text": "x" * 200_000}]}
        case "endless":
            sys.stdout.write("y" * 9_000_000)
            sys.stdout.flush()
            time.sleep(600)
        case "ansi":
            return {
                "content": [{"type": "text", "text": "\x1b]0;title\x07\x1b[31mred\x1b[0m\u202e\u200b end"}]
            }
        case "fail":
            return {"content": [{"type": "text", "text": "no such city"}], "isError": True}
        case "secret":
            key = "sk-" + "ant-api03-" + "A" * 80
            return {
                "content": [{"type": "text", "text": f"key {key} {os.environ.get('OPENAI_API_KEY', 'none')}"}]
            }
        case "picture":
            return {"content": [{"type": "image", "mimeType": "image/png", "data": args["data"]}]}
        case "book":
            day = {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]}
            asks = {"message": "Which day?", "requestedSchema": day}
            _send({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": asks})
            said = json.loads(sys.stdin.readline())["result"]
            return {"content": [{"type": "text", "text": f"call {_count('book')}: {json.dumps(said)}"}]}
        case "keep":
            kept = Path.home() / "kept"
            said = kept.read_text("utf-8") if kept.exists() else "nothing"
            kept.write_text(args["text"], "utf-8")
            return {"content": [{"type": "text", "text": f"kept {said}"}]}
        case "write":
            try:
                Path("made").write_text("made", "utf-8")
                said = "written"
            except OSError as exc:
                return {"content": [{"type": "text", "text": f"refused: {exc.strerror}"}], "isError": True}
            return {"content": [{"type": "text", "text": said}]}
    return {"content": [{"type": "text", "text": f"{name} {json.dumps(args)} pid {os.getpid()}"}]}


def _send(message: dict) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _hints(said: str) -> dict:
    return {"readOnlyHint": "reads" in said}


def result_of(method: str, params: dict, offer: dict) -> dict | None:
    match method:
        case "initialize":
            capabilities = {"tools": {}, "prompts": {}, "resources": {}}
            version = offer.get("version", "2025-06-18")
            about = {"name": "fake", "version": "1"}
            shaken = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": about}
            return {**shaken, "instructions": offer.get("instructions", "")}
        case "tools/list":
            schema = offer.get("schema", {"type": "object", "properties": {}})
            tools = offer.get("tools", {}).items()
            return {
                "tools": [
                    {"name": name, "description": said, "inputSchema": schema, "annotations": _hints(said)}
                    for name, said in tools
                ]
            }
        case "prompts/list":
            given = [{"name": "city", "required": True}]
            return {"prompts": [{"name": name, "arguments": given} for name in offer.get("prompts", {})]}
        case "prompts/get":
            said = offer["prompts"][params["name"]].format(**params["arguments"])
            return {"messages": [{"role": "user", "content": {"type": "text", "text": said}}]}
        case "resources/list":
            return {"resources": [{"uri": uri, "name": uri} for uri in offer.get("resources", {})]}
        case "resources/read":
            return {"contents": [{"uri": params["uri"], "text": offer["resources"][params["uri"]]}]}
        case "tools/call":
            return _reply(params["name"], params.get("arguments", {}))
    return None


def main() -> None:
    offer = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    sys.stderr.write("fake server at work\n")
    sys.stdout.write("a line that is no message\n")
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        result = result_of(asked["method"], asked.get("params", {}), offer)
        answer = (
            {"result": result} if result is not None else {"error": {"code": -32601, "message": "unknown"}}
        )
        _send({"jsonrpc": "2.0", "id": asked["id"], **answer})


if __name__ == "__main__":
    main()
