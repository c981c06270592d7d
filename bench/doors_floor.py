"""The least that a door over PostgreSQL can cost here: aiohttp and asyncpg, one statement a request, no identity.

    python bench/doors_floor.py DATABASE_URL

It prints its port, and ends when its standard input does. `bench.doors` compares ours with it.
"""

import asyncio
import json
import sys
from typing import Final

import asyncpg
import uvloop
from aiohttp import web

CONNECTIONS: Final = 10  # as many as a controller has
READ: Final = "SELECT row_to_json(d) FROM cron_job_details d WHERE removed_at IS NULL AND key > '' AND key = $1"
WRITE: Final = "UPDATE cron_jobs SET labels = $2::jsonb WHERE removed_at IS NULL AND key > '' AND key = $1 RETURNING id"


async def main(url: str) -> None:
    settings = {"search_path": "cronring"}
    pool = await asyncpg.create_pool(url, min_size=CONNECTIONS, max_size=CONNECTIONS, server_settings=settings)

    async def read(request: web.Request) -> web.Response:
        return web.Response(text=await pool.fetchval(READ, request.match_info["key"]), content_type="application/json")

    async def write(request: web.Request) -> web.Response:
        asked = await request.json()
        job_id = await pool.fetchval(WRITE, request.match_info["key"], json.dumps(asked["spec"]["labels"]))
        return web.json_response({"id": job_id})

    app = web.Application()
    app.add_routes([web.get("/jobs/{key}", read), web.patch("/jobs/{key}", write)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()
    await pool.close()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
