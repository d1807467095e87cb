"""A conversation by the client of another project, fastmcp, run in an environment of its own: URL TOKEN on the line.

Prints one JSON object: what it saw.
"""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport


async def talk(transport):
    async with Client(transport) as client:
        tools = [tool.name for tool in await client.list_tools()]
        read = await client.call_tool("read_file", {"paths": ["/knowledge/active-customer"]})
        found = await client.call_tool("search", {"query": "active customer"})
        rows = await client.call_tool("run_sql", {"sql": sys.argv[-1]})
        refused = await client.call_tool("run_sql", {"sql": "DROP TABLE orders"}, raise_on_error=False)
        resource = await client.read_resource("okf://shop/knowledge/active-customer.md")
        prompt = await client.get_prompt("explain_rule", {"rule": "Active Customer"})
        return {
            "tools": tools,
            "read": read.content[0].text,
            "found": found.content[0].text,
            "rows": rows.structured_content["rows"],
            "refused": refused.is_error,
            "resource": resource[0].text,
            "resources": len(await client.list_resources()),
            "prompt": prompt.messages[0].content.text,
        }


if sys.argv[1].startswith("http"):
    way = StreamableHttpTransport(sys.argv[1], headers={"Authorization": f"Bearer {sys.argv[2]}"})
else:
    way = StdioTransport(sys.argv[1], ["mcp", "--db", "shop"], cwd=sys.argv[2])
print(json.dumps(asyncio.run(talk(way))))
