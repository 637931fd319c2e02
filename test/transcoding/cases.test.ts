import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bodies, type Case, errors, paths, queries, type Rule, values } from "./cases.ts";
import { type Library, startLibrary } from "./library.ts";
import { type Reply, send } from "./wire.ts";

let library: Library;
beforeAll(async () => {
  library = await startLibrary();
});
afterAll(() => library.close());

interface Violation {
  field: string;
}

async function check(expected: Case): Promise<void> {
  library.seen.length = 0;
  const reply = await send(library.port, expected.send, expected.headers, expected.body);
  const { body } = expected;
  const what = `${expected.send} ${typeof body === "string" ? body.slice(0, 200) : ""} → ${reply.text.slice(0, 300)}`;
  expect(reply.status, what).toBe(expected.status);
  expect(library.reported, what).toEqual([]);
  if (expected.rpc !== undefined && expected.rpc !== "missing") {
    expect(library.seen[0]?.rpc ?? null, what).toBe(expected.rpc);
  }
  if (expected.input !== undefined) expect(library.seen[0]?.input, what).toMatchObject(expected.input);
  if (typeof expected.answer === "string") expect(reply.text.trimEnd(), what).toBe(expected.answer);
  else if (expected.answer !== undefined) expect(JSON.parse(reply.text), what).toMatchObject(expected.answer);
  for (const [name, value] of Object.entries(expected.answers ?? {})) {
    if (value === null) expect(reply.headers[name], what).toBeUndefined();
    else expect(reply.headers[name], what).toMatch(value);
  }
  if (reply.status >= 400 && !expected.send.startsWith("HEAD")) checkError(expected, reply, what);
}

function checkError(expected: Case, reply: Reply, what: string): void {
  const error = JSON.parse(reply.text);
  expect(Object.keys(error), what).toEqual(["code", "message", "details"]);
  expect(reply.headers["content-type"]).toBe("application/json");
  if (expected.message !== undefined) expect(error.message, what).toMatch(expected.message);
  if (expected.field !== undefined) {
    const [detail] = error.details;
    expect(detail["@type"], what).toBe("type.googleapis.com/google.rpc.BadRequest");
    expect(
      detail.fieldViolations.map(({ field }: Violation) => field),
      what,
    ).toEqual([expected.field]);
  }
}

const parts: [string, Rule[]][] = [
  ["paths", paths],
  ["query", queries],
  ["body", bodies],
  ["values", values],
  ["errors and hooks", errors],
];
for (const [part, rules] of parts) {
  describe(part, () => {
    test.for(rules)("$rule", async ({ cases }) => {
      for (const one of cases) await check(one);
    });
  });
}
