# SPDX-License-Identifier: GPL-2.0-or-later
"""A loop as SchedCP's: a model proposes kernels, the server judges them, and the model reads why.

    pip install mcp
    python agent.py                    with a model of your own in the place of `propose`

`improve` needs no more of a model than a function from the words of the last round to the next kernel, or None when it has enough.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Callable

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def improve(propose: Callable[[str], str | None], suite: str, folder: str | None = None) -> dict[str, float]:
    """The score of each kernel that was proposed."""
    command, *arguments = shlex.split(os.environ.get("SCHEDTWIN", "schedtwin"))
    arguments += ["mcp"] + (["--folder", folder] if folder else [])
    scores: dict[str, float] = {}
    async with stdio_client(StdioServerParameters(command=command, args=arguments)) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            settings = await session.call_tool("list", {"kind": "settings"})
            words = settings.content[0].text
            while (kernel := propose(words)) is not None:
                result = await session.call_tool("score", {"suite": suite, "kernels": [kernel]})
                words = result.content[0].text
                scores[kernel] = float(words.removeprefix(f"{kernel}: ").split()[0])
    return scores


if __name__ == "__main__":
    proposals = iter(["baseline", "baseline:schedutil.rate_limit_us=100"])
    print(asyncio.run(improve(lambda words: next(proposals, None), "phone")))
