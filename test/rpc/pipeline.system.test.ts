import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { principalOf } from "../../src/rpc/context.ts";
import { protocols, raw, transport } from "../support/clients.ts";
import { testDatabase } from "../support/database.ts";
import { served, testPort } from "../support/port.ts";

let caller: unknown;
let held = Promise.withResolvers<void>();
const database = await testDatabase({ waitingCallsMax: 4 });
const port = await testPort(
  [
    served(DataReceiverService, {
      async putEvents({ events }, context) {
        caller = principalOf(context);
        if (events.length === 1) throw new TypeError("canary of the inside");
        if (events.length === 2) await database.sql`select canary from nowhere`;
        if (events.length === 3) await held.promise;
        return {};
      },
    }),
    served(EntityService, {}),
  ],
  { database },
);
const { text: key, clientId } = await port.key();
const events = (count: number) => ({ events: Array.from({ length: count }, () => ({})) });

const failure = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error) => ConnectError.from(error),
  );

/** The answers of twenty calls at once: those within the bound of four end when the others have been refused. */
async function twenty<T>(call: () => Promise<T>): Promise<T[]> {
  held = Promise.withResolvers();
  let answered = 0;
  const calls = Array.from({ length: 20 }, async () => {
    const answer = await call();
    answered += 1;
    return answer;
  });
  await expect.poll(() => answered).toBeGreaterThanOrEqual(16);
  held.resolve();
  return await Promise.all(calls);
}

describe.each(protocols)("%s", (protocol) => {
  const at = (headers: Record<string, string>) => transport(port, protocol, headers);
  const client = createClient(DataReceiverService, at({ "service-api-key": key }));

  test("a handler knows who calls", async () => {
    await client.putEvents(events(0));
    expect(caller).toMatchObject({ tenantId: port.tenantId, clientId, clientType: "USER", role: "manager" });
  });

  test.each([1, 2])(
    "what nobody foresaw is code 13: its cause is logged, the caller has the id (%i)",
    async (count) => {
      const error = await failure(client.putEvents(events(count)));
      expect(error?.code).toBe(Code.Internal);
      const [, id] = /request id (\S+)$/.exec(error?.rawMessage ?? "") ?? [];
      expect(error?.rawMessage).not.toContain("canary");
      const cause = port.lines.find((line) => line.requestId === id && line.msg === "unexpected error")?.cause;
      expect(JSON.stringify(cause)).toMatch(count === 1 ? /canary of the inside/ : /nowhere/);
      expect(await port.lineOf(id)).toMatchObject({ code: "INTERNAL", client: clientId });
    },
  );

  test("an RPC that is not built yet answers code 12, to those who might call it", async () => {
    const search = async (headers: Record<string, string>) =>
      (await failure(createClient(EntityService, at(headers)).searchEntities({})))?.code;
    expect(await search({})).toBe(Code.Unauthenticated);
    expect(await search({ "service-api-key": (await port.key("DATA_INGEST")).text })).toBe(Code.PermissionDenied);
    expect(await search({ "service-api-key": key })).toBe(Code.Unimplemented);
  });

  test("calls beyond the bound are code 8, at once", async () => {
    const codes = (await twenty(async () => (await failure(client.putEvents(events(3))))?.code)).filter(
      (code) => code !== undefined,
    );
    expect(codes.length).toBeLessThan(20);
    expect(new Set(codes)).toEqual(new Set([Code.ResourceExhausted]));
    expect(await failure(client.putEvents(events(0)))).toBeUndefined();
  });
});

test("over /v1 they are 500, 501 and 429, in our form", async () => {
  const headers = { "content-type": "application/json", "service-api-key": key };
  const post = async (path: string, body: object) => {
    const answer = await raw(port, "1.1", { path, headers, body: [Buffer.from(JSON.stringify(body))] });
    return { status: answer.status, code: JSON.parse(answer.body.toString()).code };
  };
  expect(await post("/v1/data-receiver/events", events(1))).toEqual({ status: 500, code: 13 });
  expect(await post("/v1/modelcontext/entities:search", {})).toEqual({ status: 501, code: 12 });
  const answers = await twenty(() => post("/v1/data-receiver/events", events(3)));
  const refused = answers.filter(({ status }) => status !== 200);
  for (const answer of refused) expect(answer).toEqual({ status: 429, code: 8 });
});
