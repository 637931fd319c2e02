import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { atEnd } from "../support/at-end.ts";

const page = '<!doctype html><title>page</title><script type="module" src="/page.js"></script>';

/** Serves a page with page.ts on it, and returns its port. */
export async function pageServer(): Promise<number> {
  const program = await bundled();
  const server = createServer((request, response) => {
    if (request.url === "/") return response.setHeader("content-type", "text/html").end(page);
    if (request.url === "/page.js") return response.setHeader("content-type", "text/javascript").end(program);
    return response.writeHead(404).end();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  atEnd(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** Bundles page.ts as programs on web pages are. */
async function bundled(): Promise<string> {
  const bundle = await rolldown({
    cwd: fileURLToPath(new URL("../../", import.meta.url)),
    input: "test/clients/page.ts",
    platform: "browser",
    logLevel: "silent",
  });
  const { output } = await bundle.generate({ format: "es", codeSplitting: false });
  await bundle.close();
  return output[0].code;
}
