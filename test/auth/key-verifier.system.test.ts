import { setTimeout as sleep } from "node:timers/promises";
import { crc32 } from "node:zlib";
import { Code, ConnectError } from "@connectrpc/connect";
import { beforeAll, describe, expect, test } from "vitest";
import { createClient, createKey, createTenant } from "../../src/auth/create-tenant.ts";
import { staleMs } from "../../src/auth/fresh-cache.ts";
import { newApiKey } from "../../src/auth/key.ts";
import { keyVerifier } from "../../src/auth/key-verifier.ts";
import { toAnswer } from "../../src/rpc/errors.ts";
import { testDatabase } from "../support/database.ts";

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const statements: string[] = [];
const { pool, sql } = await testDatabase({ debug: (_connection, statement) => statements.push(statement) });
let tenantId: string;
let clientId: string;

beforeAll(async () => {
  ({ id: tenantId } = await createTenant(sql, "north"));
  ({ id: clientId } = await createClient(sql, tenantId, { name: "agent", type: "USER", role: "user" }));
});

/** The moment of a verifier's clock, which stands still unless a test moves it on. */
let momentMs = 0;
const verifier = (of = pool) => keyVerifier({ ...of, nowMs: () => momentMs });

const issue = (expiresMs: bigint | null = null) => createKey(sql, tenantId, clientId, { description: "", expiresMs });

/** Runs a check and reports which statements it sent. */
async function counting(check: () => unknown) {
  statements.length = 0;
  const outcome = await Promise.resolve()
    .then(check)
    .catch((error: unknown) => error);
  return { outcome, count: statements.length };
}

const refused = (text: RegExp) =>
  expect.toSatisfy(
    (error) => error instanceof ConnectError && error.code === Code.Unauthenticated && text.test(error.message),
  );

describe("a good key", () => {
  test("leads to its client and tenant", async () => {
    const { text, id, prefix } = await issue();
    expect(await verifier().verify(text)).toEqual({
      tenantId,
      tenantName: "north",
      clientId,
      clientName: "agent",
      clientType: "USER",
      role: "user",
      keyId: id,
      keyPrefix: prefix,
    });
  });

  test("costs no statement while it is fresh", async () => {
    const { text } = await issue();
    const { verify } = verifier();
    await verify(text);
    const { count } = await counting(() => {
      for (let i = 0; i < 100; i += 1) expect(verify(text)).toMatchObject({ clientId });
    });
    expect(count).toBe(0);
  });

  test("is read once for a hundred calls that come together", async () => {
    const { text } = await issue();
    const { verify } = verifier();
    const { count } = await counting(() => Promise.all(Array.from({ length: 100 }, () => verify(text))));
    expect(count).toBe(2); // prefix, then key
  });
});

describe("refused", () => {
  test("a missing key", async () => {
    const { verify } = verifier();
    for (const none of [null, undefined, ""]) {
      expect((await counting(() => verify(none))).outcome).toEqual(refused(/service-api-key/));
    }
  });

  test("a key with a wrong checksum, without a statement", async () => {
    const { text } = await issue();
    const { outcome, count } = await counting(() =>
      verifier().verify(`${text.slice(0, -1)}${text.endsWith("0") ? "1" : "0"}`),
    );
    expect(outcome).toEqual(refused(/checksum/));
    expect(count).toBe(0);
  });

  test("an unknown key, with one statement a second however often it comes", async () => {
    const { verify } = verifier();
    const { text } = newApiKey();
    const { outcome, count } = await counting(async () => {
      for (let i = 0; i < 50; i += 1) await Promise.resolve(verify(text)).catch(() => {});
      await verify(text);
    });
    expect(outcome).toEqual(refused(/not valid/));
    expect(count).toBe(1);
  });

  test("another secret under a known prefix", async () => {
    const { text, prefix } = await issue();
    const { verify } = verifier();
    await verify(text);
    const forged = forgeKey(prefix);
    expect((await counting(() => verify(forged))).outcome).toEqual(refused(/not valid/));
  });

  test("an expired key", async () => {
    const { text } = await issue(BigInt(Date.now() + 5000));
    const { verify } = verifier();
    expect(await verify(text)).toMatchObject({ clientId });
    const outcome = async () => {
      momentMs += staleMs;
      return (await counting(() => verify(text))).outcome;
    };
    await expect.poll(outcome).toEqual(refused(/not valid/));
  });

  test("a revoked key, within a second and however busy it is", async () => {
    const { text, id } = await issue();
    const { verify } = verifier();
    await verify(text);
    await sql`delete from api_keys where tenant_id = ${tenantId} and id = ${id}`;
    for (const endMs = momentMs + 990; momentMs < endMs; momentMs += 10) await counting(() => verify(text));
    expect((await counting(() => verify(text))).outcome).toEqual(refused(/not valid/));
  });
});

describe("while the database is away", () => {
  test("a key that is not fresh is answered with code 14, not 16", async () => {
    const { text } = await issue();
    const away = await testDatabase();
    const { verify } = verifier(away.pool);
    await away.drop();
    const { outcome } = await counting(() => verify(text));
    expect(toAnswer(outcome, "").answer.code).toBe(Code.Unavailable);
  });
});

/** A key of right form and checksum with a prefix of someone else. */
function forgeKey(prefix: string) {
  const { text, prefix: own } = newApiKey();
  const body = text.replace(own, prefix).slice(0, -6);
  let sum = "";
  for (let rest = crc32(body); sum.length < 6; rest = Math.floor(rest / 62)) sum = digits[rest % 62] + sum;
  return body + sum;
}

test("keys that are tried out push out no good one, and nobody else waits among them", async () => {
  const [known, elsewhere] = [await issue(), await issue()];
  const { verify } = verifier();
  await verify(known.text);
  momentMs += staleMs;
  const tries = Array.from({ length: 1200 }, () =>
    Promise.resolve()
      .then(() => verify(newApiKey().text, "192.0.2.7"))
      .catch((error: ConnectError) => error.code),
  );
  await sleep(0);
  const { count } = await counting(async () => {
    expect(await verify(known.text, "192.0.2.7")).toMatchObject({ clientId });
    expect(await verify(elsewhere.text, "192.0.2.8")).toMatchObject({ clientId });
  });
  expect(count).toBeLessThan(500); // of the 800 that one address may have wait
  expect(new Set(await Promise.all(tries))).toEqual(new Set([Code.Unauthenticated, Code.ResourceExhausted]));
});
