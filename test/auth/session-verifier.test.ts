import { setTimeout as sleep } from "node:timers/promises";
import { Code, type ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { createClient, createKey } from "../../src/auth/create-tenant.ts";
import { checksum } from "../../src/auth/key.ts";
import { newProof, newToken, withProof } from "../../src/auth/session-token.ts";
import { sessionVerifier } from "../../src/auth/session-verifier.ts";
import { createSession } from "../../src/auth/sessions.ts";
import { transaction } from "../../src/db/transaction.ts";
import { testDatabase } from "../support/database.ts";
import { testTenant } from "../support/tenant.ts";

const statements: string[] = [];
const { pool, sql } = await testDatabase({ debug: (_connection, statement) => statements.push(statement) });
const bounds = { sessionIdleMs: 3_600_000, sessionAgeMsMax: 3_600_000 };
const tenant = await testTenant(sql);
const stranger = "192.0.2.7";

/** A session of our tenant, with its proof. */
async function session() {
  const client = await createClient(sql, tenant.id, { name: crypto.randomUUID(), type: "USER", role: "user" });
  const { id: keyId } = await createKey(sql, tenant.id, client.id, { description: "", expiresMs: null });
  const made = await transaction(sql, (tx) => createSession(tx, { tenantId: tenant.id, keyId }, bounds));
  return { id: made.id, text: withProof(made.text, made.proof) };
}

/** Another secret for a tenant and an id, in the right form. */
function forged(named: string, tenantId = tenant.id) {
  const other = newToken("bs", tenantId).text;
  const body = `${other.slice(0, 25)}${named.slice(25, 48)}${other.slice(48, -6)}`;
  return withProof(body + checksum(body), newProof());
}

const verifier = () => sessionVerifier({ ...pool, bounds });
const ended = expect.objectContaining({ code: Code.Unauthenticated });
const outcome = async (check: () => unknown) =>
  await Promise.resolve()
    .then(check)
    .catch((error: unknown) => error);
const readAgainMs = 950;

test("a session costs no statement while it is fresh, and one that has ended none either", async () => {
  const { verify, forget } = verifier();
  const { id, text } = await session();
  expect(await verify(text)).toMatchObject({ tenantId: tenant.id, sessionId: id });
  statements.length = 0;
  for (let i = 0; i < 100; i++) expect(verify(text)).toMatchObject({ sessionId: id });
  forget(tenant.id, id);
  for (let i = 0; i < 100; i++) expect(await outcome(() => verify(text))).toEqual(ended);
  expect(statements).toEqual([]);
});

test("a token with the id of a session and another tenant, or another secret, does that session nothing", async () => {
  const { verify } = verifier();
  const { id, text } = await session();
  const other = await testTenant(sql);
  // Before the session is remembered, and after.
  for (const wrong of [forged(text), forged(text, other.id), forged(text)]) {
    expect(wrong.slice(25, 48)).toBe(text.slice(25, 48));
    expect(await outcome(() => verify(wrong, stranger))).toEqual(ended);
    expect(await verify(text)).toMatchObject({ sessionId: id });
  }
  statements.length = 0;
  expect(await outcome(() => verify(forged(text), stranger))).toEqual(ended);
  expect(statements).toEqual([]);
});

test("who has a session does not wait among tokens that are tried out, and who comes from elsewhere takes turns with them", async () => {
  const { verify } = verifier();
  const [mine, theirs] = [await session(), await session()];
  await verify(mine.text);
  await sleep(readAgainMs);
  statements.length = 0;
  const tries = Array.from({ length: 1200 }, () =>
    outcome(() => verify(withProof(newToken("bs", tenant.id).text, newProof()), stranger)),
  );
  await sleep(0);
  expect(await verify(mine.text, stranger)).toMatchObject({ sessionId: mine.id });
  expect(await verify(theirs.text, "192.0.2.8")).toMatchObject({ sessionId: theirs.id });
  expect(statements.length).toBeLessThan(500); // of the 800 that one address may have wait
  const codes = (await Promise.all(tries)).map((error) => (error as ConnectError).code);
  expect(new Set(codes)).toEqual(new Set([Code.Unauthenticated, Code.ResourceExhausted]));
});

test("who has a session does not wait in the line of an address that guesses its id", async () => {
  const { verify } = verifier();
  const mine = await session();
  const guesses = Array.from({ length: 700 }, () => withProof(newToken("bs", tenant.id).text, newProof()));
  statements.length = 0;
  const tries = [...guesses, forged(mine.text)].map((text) => outcome(() => verify(text, stranger)));
  await sleep(0);
  expect(await verify(mine.text, "192.0.2.8")).toMatchObject({ sessionId: mine.id });
  expect(statements.length).toBeLessThan(500); // of the 700 that wait
  for (const error of await Promise.all(tries)) expect(error).toEqual(ended);
});

test("a session that ends here while it is read is refused, and stays refused", async () => {
  for (const isKnown of [false, true]) {
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    let holds = !isKnown;
    async function run<T>(fn: () => Promise<T>): Promise<T> {
      const found = await fn();
      if (holds) await held;
      return found;
    }
    const { verify, forget } = sessionVerifier({ ...pool, gate: { run }, bounds });
    const { id, text } = await session();
    if (isKnown) {
      await verify(text);
      await sleep(readAgainMs);
      holds = true;
    }
    statements.length = 0;
    const reading = outcome(() => verify(text));
    await expect.poll(() => statements.length).toBeGreaterThan(0);
    forget(tenant.id, id);
    release();
    expect(await reading).toEqual(ended);
    expect(await outcome(() => verify(text))).toEqual(ended);
  }
});

test("a session that ended elsewhere is refused once it is read again", async () => {
  const { verify } = verifier();
  const { id, text } = await session();
  await verify(text);
  await sql`delete from console_sessions where tenant_id = ${tenant.id} and id = ${id}`;
  await sleep(readAgainMs);
  expect(await outcome(() => verify(text))).toEqual(ended);
});
