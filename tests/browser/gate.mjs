// A gate before a server: HTTP always passes, WebSockets only while it is open. So a page can be reloaded while its
// connection is cut.

import { once } from "node:events";
import { createServer, request } from "node:http";
import { connect } from "node:net";

/** Answers `{url, shut, open, close}`; `shut` ends the WebSockets that are there and refuses others. */
export async function startGate(port) {
  const sockets = new Set();
  let isOpen = true;

  const gate = createServer((incoming, answer) => {
    const { method, url: path, headers } = incoming;
    const outgoing = request({ port, method, path, headers }, (response) => {
      answer.writeHead(response.statusCode, response.headers);
      response.pipe(answer);
    });
    outgoing.on("error", () => answer.destroy());
    incoming.pipe(outgoing);
  });

  gate.on("upgrade", ({ method, url: path, rawHeaders }, client, head) => {
    if (!isOpen) return void client.destroy();
    const server = connect(port, "127.0.0.1", () => {
      const lines = rawHeaders.flatMap((word, i) => (i % 2 === 0 ? [`${word}: ${rawHeaders[i + 1]}`] : []));
      server.write([`${method} ${path} HTTP/1.1`, ...lines, "", ""].join("\r\n"));
      server.write(head);
      server.pipe(client).pipe(server);
    });
    for (const [socket, other] of [[client, server], [server, client]]) {
      sockets.add(socket);
      socket.on("error", () => other.destroy());
      socket.on("close", () => (sockets.delete(socket), other.destroy()));
    }
  });

  gate.listen(0, "127.0.0.1");
  await once(gate, "listening");
  const cut = () => sockets.forEach((socket) => socket.destroy());
  return {
    url: `http://127.0.0.1:${gate.address().port}`,
    shut: () => ((isOpen = false), cut()),
    open: () => (isOpen = true),
    close: () => (cut(), gate.closeAllConnections(), gate.close()),
  };
}
