import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { eq } from "drizzle-orm";
import { describe, expect, test } from "vitest";
import { ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { BadRequestSchema } from "#gen/google/rpc/error_details_pb.ts";
import { apiKeyPrefixes } from "../../src/auth/tables.ts";
import { toSql } from "../../src/clause/to-sql.ts";
import { cancelOn } from "../../src/db/driver/cancel.ts";
import { invalidFields, notFound } from "../../src/errors.ts";
import { abortError, pathsWithin, toAnswer } from "../../src/rpc/errors.ts";
import { testDatabase } from "../support/database.ts";

const { sql, pool } = await testDatabase();

const failure = (work: () => PromiseLike<unknown>) =>
  Promise.resolve()
    .then(work)
    .then(
      () => Promise.reject(new Error("it did not fail")),
      (error: unknown) => error,
    );

const codeOf = (error: unknown, signal?: AbortSignal) => toAnswer(error, "r-1", signal).answer.code;

describe("what PostgreSQL refuses", () => {
  test("a taken unique value is code 6", async () => {
    const insert = () => sql`insert into tenants (id, name, created_ms) values (gen_random_uuid(), 'twice', 0)`;
    await insert();
    const { answer, unexpected } = toAnswer(await failure(insert), "r-1");
    expect(answer.code).toBe(Code.AlreadyExists);
    expect(answer.rawMessage).not.toContain("twice");
    expect(unexpected).toBe(false);
  });

  test("a serialization failure and a deadlock are code 10", async () => {
    for (const state of ["40001", "40P01"]) {
      const error = await failure(() =>
        sql.unsafe(`do $$ begin raise exception 'x' using errcode = '${state}'; end $$`),
      );
      expect(codeOf(error), state).toBe(Code.Aborted);
    }
  });

  test("an expression that it gives up is code 3", async () => {
    const error = await failure(() => sql`select 'a' ~ ${`(?:${"\\y".repeat(40)})*`}`);
    expect(codeOf(error)).toBe(Code.InvalidArgument);
  });

  test("a statement that takes too long is code 4", async () => {
    const error = await failure(() =>
      sql.begin(async (tx) => {
        await tx`set local statement_timeout = 50`;
        await tx`select pg_sleep(5)`;
      }),
    );
    expect(codeOf(error)).toBe(Code.DeadlineExceeded);
  });

  test("one that takes too long and compares with regular expressions is code 3, which says so", async () => {
    const value = { kind: { case: "stringValue" as const, value: "a.*b" } };
    const filter = { field: "f", operation: Operation.OP_REGEX, value };
    const regexClause = create(ClauseSchema, { filter });
    const slow = sql`repeat('ab', n % 1000)`;
    const condition = toSql(sql, regexClause, "query.clause", {
      field: () => ({ type: "text", sql: () => slow }),
      withIds: () => slow,
    });
    const error = await failure(() =>
      sql.begin(async (tx) => {
        await tx`set local statement_timeout = 50`;
        await tx`select from generate_series(1, 100000000) as n where ${condition}`;
      }),
    );
    expect(toAnswer(error, "r-1").answer).toMatchObject({
      code: Code.InvalidArgument,
      rawMessage: expect.stringContaining("with regular expressions"),
    });
  });

  test("a statement that the caller has cancelled is code 1", async () => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 50);
    const error = await failure(() => cancelOn(sql`select pg_sleep(5)`, controller.signal));
    expect(codeOf(error, controller.signal)).toBe(Code.Canceled);
  });

  test("a connection that breaks is code 14, and says when to come again", async () => {
    const error = await failure(() => sql`select pg_terminate_backend(pg_backend_pid())`);
    const { answer, unexpected } = toAnswer(error, "r-1");
    expect(answer.code).toBe(Code.Unavailable);
    expect(answer.metadata.get("retry-after")).toBe("1");
    expect(unexpected).toBe(false);
  });

  test("anything else is code 13, whose message holds the request id and nothing of the statement", async () => {
    const { drizzle } = await import("drizzle-orm/postgres-js");
    const missing = () => sql`select secret_column from tenants where name = ${"canary"}`;
    const wrapped = () =>
      drizzle(pool.sql as never)
        .select({ x: eq(apiKeyPrefixes.tenantId, "canary-no-uuid") })
        .from(apiKeyPrefixes)
        .where(eq(apiKeyPrefixes.tenantId, "canary-no-uuid"));
    for (const work of [missing, wrapped]) {
      const { answer, unexpected } = toAnswer(await failure(work), "r-1");
      expect(answer.code).toBe(Code.Internal);
      expect(answer.rawMessage).toBe("internal error; the log has its cause under request id r-1");
      expect(answer.cause).toBeUndefined();
      expect(unexpected).toBe(true);
    }
  });
});

describe("what handlers throw", () => {
  test("an error made for callers passes as it is", () => {
    const error = notFound("entity", "x");
    expect(toAnswer(error, "r-1")).toEqual({ answer: error, unexpected: false });
  });

  test("a mistake of ours is code 13, and nothing of it is reported", () => {
    const { answer, unexpected } = toAnswer(new TypeError("canary"), "r-1");
    expect(answer.code).toBe(Code.Internal);
    expect(JSON.stringify(answer) + answer.message).not.toContain("canary");
    expect(unexpected).toBe(true);
  });

  test("a refused connection to another server is not the database's", () => {
    const error = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    expect(codeOf(error)).toBe(Code.Internal);
  });
});

describe("why a call was aborted", () => {
  test.each([
    ["its deadline passed", new ConnectError("late", Code.DeadlineExceeded), Code.DeadlineExceeded],
    ["the server stops", new ConnectError("stopping", Code.Unavailable), Code.Unavailable],
    ["the caller reset it", new ConnectError("reset", Code.Aborted), Code.Canceled],
    ["the caller has gone", undefined, Code.Canceled],
  ])("%s", (_why, reason, code) => {
    expect(abortError(AbortSignal.abort(reason)).code).toBe(code);
  });
});

test("paths of an error lose the field whose value the JSON body is, in details and message", () => {
  const error = invalidFields([
    { path: "trigger.name", rule: "is required" },
    { path: "triggers", rule: "are too many" },
  ]);
  const answer = pathsWithin("trigger", error);
  expect(answer.rawMessage).toBe("name: is required; triggers: are too many");
  expect(answer.findDetails(BadRequestSchema)[0]?.fieldViolations.map(({ field }) => field)).toEqual([
    "name",
    "triggers",
  ]);
  const other = notFound("trigger", "trigger.name");
  expect(pathsWithin("trigger", other)).toBe(other);
});
