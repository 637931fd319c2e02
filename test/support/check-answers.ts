// Runs before each test file: every answer of /v1 that its code fetches is held to the OpenAPI document.
import { checkAnswer } from "./documented.ts";

const place = Symbol.for("belfry.fetch");
const global = globalThis as typeof globalThis & { [place]?: typeof fetch };

// Once in a process that runs several files.
if (global[place] === undefined) {
  const plain = globalThis.fetch;
  global[place] = plain;
  globalThis.fetch = async (input, init) => {
    const answer = await plain(input, init);
    const { pathname, search } = new URL(input instanceof Request ? input.url : input);
    if (!pathname.startsWith("/v1/") || !answer.headers.get("content-type")?.startsWith("application/json"))
      return answer;
    const copy = await answer.clone().text();
    if (copy !== "") checkAnswer(init?.method ?? "GET", pathname + search, answer.status, copy);
    return answer;
  };
}
