import { argon2Sync } from "node:crypto";
import { describe, expect, test } from "vitest";
import { passwordHasher } from "../../src/users/password.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { accountsPath, password } from "./cases.ts";

const who = {};
const never = new AbortController().signal;
const wanted = async () => {};

/** Whether a hash in PHC form is that of a password. */
function matches(hash: string, text: string): boolean {
  const form = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/.exec(hash);
  const [, memory, passes, parallelism, salt = "", tag = ""] = form ?? [];
  const wanted = Buffer.from(tag, "base64");
  const parameters = { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) };
  const nonce = Buffer.from(salt, "base64");
  return argon2Sync("argon2id", { ...parameters, message: text, nonce, tagLength: wanted.length }).equals(wanted);
}

describe("the hash", () => {
  const hash = passwordHasher();

  test("is argon2id with OWASP's parameters, in PHC form, and proves the password alone", async () => {
    for (const text of ["Correct-horse-7", "Pässwörd-😀-7", `A1!${"xyz".repeat(300)}`]) {
      const made = await hash(who, text, never, wanted);
      expect(made).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
      expect(matches(made, text)).toBe(true);
      expect(matches(made, `${text} `)).toBe(false);
    }
  });

  test("has a salt of its own", async () => {
    expect(await hash(who, "Correct-horse-7", never, wanted)).not.toBe(
      await hash(who, "Correct-horse-7", never, wanted),
    );
  });
});

describe("hashing many", () => {
  test("has a bound: those that would wait beyond it are answered code 8 at once, the others are hashed", async () => {
    const hash = passwordHasher({ atOnceMax: 2, waitingMax: 3 });
    const outcomes = await Promise.allSettled(
      Array.from({ length: 10 }, (_, i) => hash(who, `Correct-horse-${i}`, never, wanted)),
    );
    const refused = outcomes.filter(({ status }) => status === "rejected");
    expect(refused).toHaveLength(5);
    for (const outcome of refused) expect(outcome).toMatchObject({ reason: { code: 8 } });
    // What was refused and done has left its places.
    await expect(
      Promise.all(Array.from({ length: 5 }, () => hash(who, password, never, wanted))),
    ).resolves.toHaveLength(5);
  });

  test("keeps the event loop free, and memory to this many at a time", async () => {
    const hash = passwordHasher({ atOnceMax: 2, waitingMax: 100 });
    const before = process.memoryUsage.rss();
    let highest = before;
    let turns = 0;
    const watch = setInterval(() => {
      turns += 1;
      highest = Math.max(highest, process.memoryUsage.rss());
    }, 1);
    await Promise.all(Array.from({ length: 30 }, () => hash(who, password, never, wanted)));
    clearInterval(watch);
    expect(turns).toBeGreaterThan(30);
    expect(highest - before).toBeLessThan(8 * 19 * 1024 * 1024);
  });

  test("takes turns between tenants: one that waits for hundreds does not hold up another's", async () => {
    const hash = passwordHasher({ atOnceMax: 1 });
    const leaving = new AbortController();
    let done = 0;
    const flood = Array.from({ length: 500 }, () =>
      hash({ tenant: "busy", key: "k" }, password, leaving.signal, wanted).then(() => {
        done += 1;
      }),
    );
    const outcomes = Promise.allSettled(flood);
    await hash({ tenant: "other", key: "l" }, password, never, wanted);
    expect(done).toBeLessThanOrEqual(2);
    leaving.abort();
    await outcomes;
  });

  test("passes over those that are not wanted any more when their turn comes", async () => {
    const hash = passwordHasher({ atOnceMax: 1, waitingMax: 2 });
    const refused = hash(who, password, never, () => Promise.reject(new Error("taken")));
    const next = hash(who, password, never, wanted);
    await expect(refused).rejects.toThrow("taken");
    expect(await next).toMatch(/^\$argon2id/);
  });

  test("passes over those whose callers have left", async () => {
    const hash = passwordHasher({ atOnceMax: 1, waitingMax: 2 });
    const leaving = new AbortController();
    const first = hash(who, password, never, wanted);
    const second = hash(who, password, leaving.signal, wanted);
    const third = hash(who, password, never, wanted);
    leaving.abort(new Error("gone"));
    await expect(second).rejects.toThrow("gone");
    await expect(hash(who, password, leaving.signal, wanted)).rejects.toThrow("gone");
    const fourth = hash(who, password, never, wanted); // the place of the second
    expect(await Promise.all([first, third, fourth])).toHaveLength(3);
  });
});

describe("a password", async () => {
  const server = await testServer();
  const tenant = await testTenant(server.database.sql);
  const json = v1(server.url, tenant.headers);
  let made = 0;
  const create = (text: unknown) => {
    made += 1;
    return json("POST", accountsPath, { user: { email: `p${made}@example.com`, password: text } });
  };

  test.each([
    "Abcdef12",
    "abcdef1!",
    "ABCDEF1!",
    "Abcdefg^",
    "aa11AA!!",
    "Ünïcödé1",
    "Abcd efgh 1",
    `Ab1${"cd".repeat(510)}x`,
  ])("%j is taken, and only its hash is stored", async (text) => {
    const answer = await create(text);
    expect(answer.status).toBe(200);
    const [row] = await server.database.sql`
        select password_hash from user_accounts where tenant_id = ${tenant.id} and id = ${answer.body.user.id}`;
    expect(matches(row?.password_hash, text)).toBe(true);
  });

  const short = "user.password: must be at least 8 characters";
  const long = "user.password: must be at most 1024 characters";
  const runs = "user.password: must not have more than two identical characters in a row";
  const classes =
    "user.password: must have characters of at least three of the classes lower-case letters, upper-case letters, digits " +
    "and special characters (! @ # $ % ^ & *)";

  test.each([
    ["Abcde1!", short],
    ["Ab1😀😀", short],
    [`${"Ab1!".repeat(256)}x`, long],
    ["Abcdefff1", runs],
    ["Ab1😀😀😀xyz", runs],
    ["Abcdefgh", classes],
    ["abcdefg1", classes],
    ["ABCDEFG!", classes],
    ["12345678!", classes],
    ["Abcdef-_+", classes],
    ["        ", classes],
    ["aB1", short],
  ])("%j is refused with its own rule", async (text, rule) => {
    const answer = await create(text);
    expect(answer).toMatchObject({ status: 400, body: { code: 3, message: rule } });
  });

  test("that breaks several rules is told all that its form breaks", async () => {
    expect((await create("")).body.message.split("; ").sort()).toEqual([classes, short].sort());
  });

  test.each([undefined, null])("that is missing (%s) is refused", async (text) => {
    expect((await create(text)).body).toMatchObject({ code: 3, message: "user.password: is required" });
  });
});
