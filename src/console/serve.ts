import type { FastifyInstance } from "fastify";
import { answerAsset, asset } from "../http/pages/asset.ts";
import type { Log } from "../log.ts";
import type { BuiltConsole } from "./built-files.ts";

/** The console's pages, for browsers. */
export interface ConsolePages {
  serve(app: FastifyInstance): void;
  /** Builds them now, not when they are first asked for. @throws Error with the bundler's words */
  build(): Promise<unknown>;
}

const notBuilt = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
};

/** The console's files below `/console/`; where they cannot be built, a page that says how. */
export function consolePages({ files }: BuiltConsole, log: Log): ConsolePages {
  return {
    build: files,
    serve(app) {
      app.get("/console", async (_request, reply) => reply.redirect("/console/", 308));
      app.get<{ Params: { "*": string } }>("/console/*", async (request, reply) => {
        try {
          const file = (await files()).get(request.params["*"]);
          return file === undefined ? reply.callNotFound() : await answerAsset(request, reply, file);
        } catch (error) {
          log.error({ err: error }, "the console cannot be built");
          reply.code(503);
          return await answerAsset(request, reply, asset("not-built.html", whyNot(error as Error), notBuilt));
        }
      });
    },
  };
}

const escaped = (text: string) => text.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);

function whyNot({ message }: Error): string {
  return `<!doctype html>
<html lang="en">
<title>Belfry: the console is not built</title>
<h1>The console is not built</h1>
<p>The API serves as ever. To build the console, run <code>npm ci</code> in the checkout and load this page again. The build said:</p>
<pre>${escaped(message.slice(0, 4000))}</pre>
</html>
`;
}
