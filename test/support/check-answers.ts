// Runs before each test file: every answer of /v1 that its code fetches is held to the OpenAPI document.
import { checkAnswer, checkRecords } from "./documented.ts";

const streams = new Set(["application/x-ndjson", "text/event-stream"]);
const place = Symbol.for("belfry.fetch");
const global = globalThis as typeof globalThis & { [place]?: typeof fetch };

// Once in a process that runs several files.
if (global[place] === undefined) {
  const plain = globalThis.fetch;
  global[place] = plain;
  globalThis.fetch = async (input, init) => {
    const answer = await plain(input, init);
    const { pathname, search } = new URL(input instanceof Request ? input.url : input);
    if (!pathname.startsWith("/v1/")) return answer;
    const [method, url] = [init?.method ?? "GET", pathname + search];
    const [type = ""] = (answer.headers.get("content-type") ?? "").split(";");
    if (streams.has(type) && answer.body !== null)
      return new Response(answer.body.pipeThrough(checkRecords(method, url, type)), answer);
    if (type !== "application/json") return answer;
    const copy = await answer.clone().text();
    if (copy !== "") checkAnswer(method, url, answer.status, copy);
    return answer;
  };
}
