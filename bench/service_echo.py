"""The stack alone, without a database: what is posted is pushed to every WebSocket. `python -m bench.service_echo PORT`"""

from __future__ import annotations

import sys

import uvicorn
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from vigilog.service.wire import FramesProtocol

app = FastAPI()
sockets: set[WebSocket] = set()


@app.post("/v1/transactions")
async def echo(request: Request) -> Response:
    body = (await request.body()).decode()
    for socket in list(sockets):
        await socket.send_text(body)
    return Response(b"{}", media_type="application/json")


@app.get("/health")
async def health() -> Response:
    return Response(b"{}", media_type="application/json")


async def subscribe(socket: WebSocket) -> None:
    await socket.accept()
    try:
        await socket.receive_text()
        sockets.add(socket)
        await socket.send_text('{"snapshot":{"last":true}}')
        while True:
            await socket.receive_text()
    except WebSocketDisconnect:
        sockets.discard(socket)


app.router.routes.append(WebSocketRoute("/v1/subscribe", subscribe))

if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), ws=FramesProtocol, ws_per_message_deflate=False, access_log=False, log_level="warning")
