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

test("metadata with more to search for than an index holds fail alone, by their field; at the limit they are stored", async () => {
  // A value makes a term of 8 + 1 + 4 + 1 + 100 + 1 + 8 bytes, and an entity may have 512 KiB of them.
  const field = `_orgs_${key(994)}`;
  const texts = (count: number) => Array.from({ length: count }, (_, i) => `v${String(i).padStart(7, "0")}`);
  const most = Math.floor((512 * 1024) / 123);
  const answer = await put(
    model("texts", { _orgs_a: "a".repeat(64), [field]: texts(most) }),
    model("most", { [field]: texts(most) }),
    model("beside", {}),
  );
  expect(answer).toMatchObject({ succeeded: 2, failed: 1 });
  expect(answer.failedModels[0].error).toBe(
    `models[0].metadataFields["${field}"]: holds more values to search for than an index takes: send fewer of them, or a shorter key`,
  );
  const numbers = Array.from({ length: 7000 }, (_, i) => i + 100_000);
  expect(await put(model("other", { [key(1000)]: numbers }))).toMatchObject({ succeeded: 1 });
});

test("custom properties with more to search for than an index holds are refused, at once and by and by", async () => {
  await put(model("properties", {}));
  const clause = { filter: { field: "dimensions.source", operation: "OP_EQUALS", value: "properties" } };
  const set = (name: string, count: number) =>
    call("POST", "/v1/modelcontext/customproperties:set", {
      input: { query: { clause } },
      properties: { [name.padEnd(255, "n")]: Array.from({ length: count }, (_, i) => i + 1000) },
    });
  const whole = await set("one", 9000);
  expect(whole).toMatchObject({ status: 400, body: { code: 3 } });
  expect(whole.body.message).toContain("hold more values to search for than an index takes");
  const answers = [];
  for (const name of ["a", "b", "c", "d", "e", "f", "g", "h", "i"]) answers.push(await set(name, 2500));
  expect(answers[0]).toMatchObject({ status: 200 });
  const refused = answers.filter(({ status }) => status !== 200);
  expect(refused.length).toBeGreaterThan(0);
  for (const { status, body } of refused) {
    expect([status, body.code]).toEqual([400, 3]);
    expect(body.message).toMatch(
      /^properties: must not bring the entity .* nor above 393216 bytes of terms to search for/,
    );
  }
});

test("a list of values may have 10,000, however long they are; with more it is refused by its field", async () => {
  for (const field of ["metadataFields.owner", `_orgs_${"k".repeat(200)}`, "dimensions.source"]) {
    for (const path of ["/v1/modelcontext/entities:search", "/v1/events:search"]) {
      const search = async (count: number) => {
        const values = Array.from({ length: count }, (_, i) => `${i} ${"v".repeat(120)}`);
        const query = { clause: { in: { field, values } } };
        return call("POST", path, path.includes("entities") ? { search_input: { query } } : { query });
      };
      expect(await search(10_000)).toMatchObject({ status: 200 });
      const { status, body } = await search(10_001);
      expect([status, body.code]).toEqual([400, 3]);
      expect(body.message).toMatch(/clause\.in\.values: must have at most 10000 items/);
      expect(await search(25_000)).toMatchObject({ status: 400, body: { code: 3 } });
    }
  }
}, 120_000);
