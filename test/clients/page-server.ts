import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { stripTypeScriptTypes } from "node:module";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { atEnd } from "../support/at-end.ts";

const root = new URL("../../", import.meta.url);

const page = '<!doctype html><title>page</title><script type="module" src="/test/clients/page.ts"></script>';

/** What a module imports by a package's name, as the address of its file here. */
function resolved(code: string) {
  return code.replace(/(\b(?:from|import)\s*)"([@#a-z][^":]*)"/g, (_, before: string, name: string) => {
    return `${before}"/${fileURLToPath(import.meta.resolve(name)).slice(fileURLToPath(root).length)}"`;
  });
}

/** Serves a page with page.ts on it, and modules of this repository and its packages as browsers take them, without a bundler. Returns its port. */
export async function pageServer(): Promise<number> {
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://x").pathname;
    if (path === "/") return response.setHeader("content-type", "text/html").end(page);
    try {
      const text = readFileSync(new URL(`.${path}`, root), "utf8");
      const code = path.endsWith(".ts") ? stripTypeScriptTypes(text) : text;
      return response.setHeader("content-type", "text/javascript").end(resolved(code));
    } catch {
      return response.writeHead(404).end();
    }
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  atEnd(() => server.close());
  return (server.address() as AddressInfo).port;
}
