import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const tenant = await testTenant(server.database.sql);
const call = v1(server.url, tenant.headers);

const model = (source: string, metadataFields: object) => ({
  timestamp: String(Date.now()),
  dimensions: { source },
  metadataFields,
});
const put = async (...models: object[]) =>
  (await call("POST", "/v1/data-receiver/models", { detailedResponse: true, models })).body;
const key = (bytes: number) => randomBytes(bytes).toString("hex").slice(0, bytes);

test("a metadata key may have 1,024 bytes, and the entity is found by it; a longer one is refused alone", async () => {
  const long = key(1024);
  const answer = await put(model("good", { [long]: "x" }), model("long", { [`${long}y`]: "x" }), model("plain", {}));
  expect(answer).toMatchObject({ succeeded: 2, failed: 1 });
  expect(answer.failedModels[0].error).toContain("models[1].metadataFields: must have keys of at most 1024 bytes");
  const clause = { filter: { field: `metadataFields.${long}`, operation: "OP_EQUALS", value: "x" } };
  const search = { search_input: { query: { clause } } };
  expect((await call("POST", "/v1/modelcontext/entities:search", search)).status).not.toBe(500);
});

test("metadata with more to search for than an index holds fail alone, without the driver's words; the next model is stored", async () => {
  // 64 KiB of JSON below a long key.
  const values = Array.from({ length: 7000 }, (_, i) => i + 100_000);
  const texts = Array.from({ length: 1500 }, (_, i) => `${i} ${key(30)}`);
  const answer = await put(
    model("numbers", { [key(1000)]: values }),
    model("texts", { [key(1000)]: texts }),
    model("beside", {}),
  );
  expect(answer.succeeded + answer.failed).toBe(3);
  expect(answer.succeeded).toBeGreaterThan(0);
  for (const { error } of answer.failedModels ?? []) {
    expect(error).toContain("cannot be stored: a value of it is too large");
    expect(error).not.toMatch(/tsvector|btree|index row/);
  }
  expect(await put(model("next", {}))).toMatchObject({ succeeded: 1 });
});

test("lists of a search beyond what one statement takes are refused with code 3, never 13", async () => {
  for (const count of [1000, 10_000, 25_000, 60_000]) {
    const values = Array.from({ length: count }, (_, i) => `value number ${i}`);
    for (const path of ["/v1/modelcontext/entities:search", "/v1/events:search"]) {
      const query = { clause: { in: { field: "metadataFields.owner", values } } };
      const { status, body } = await call(
        "POST",
        path,
        path.includes("entities") ? { search_input: { query } } : { query },
      );
      expect([200, 400, 413]).toContain(status);
      if (status !== 200) expect([3, 8]).toContain(body.code);
    }
  }
}, 120_000);
