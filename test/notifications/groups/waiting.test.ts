import { expect, test } from "vitest";
import { groupPlace } from "./group-place.ts";

const slow = { by: ["source"], waitSec: "0", intervalSec: "3600" };
const closed = { status: "STATUS_CLOSED" };

/** A rule of which a message about some alerts has failed once and waits. */
async function waitingPlace(names: readonly string[], more: object = {}) {
  const place = await groupPlace();
  const { receiver, rule, reportAll, server, tenant, ok } = place;
  const { sql } = server.database;
  receiver.answer((_request, response) => response.writeHead(503).end());
  await rule("r", { sendUpdates: true, grouping: { ...slow, waitSec: "1" }, ...more });
  await reportAll(names);
  const waits = async () => (await sql`select from due_deliveries where tenant_id = ${tenant.id} and tries > 0`).count;
  await expect.poll(waits, { interval: 20 }).toBe(1);
  receiver.answer((_request, response) => response.writeHead(200).end());
  return {
    ...place,
    /** Has what waits for another try tried now. */
    async tried() {
      await sql`update due_deliveries set due_ms = 0 where tenant_id = ${tenant.id} and silence_id is null`;
      await sql`update due_work set due_ms = 0 where tenant_id = ${tenant.id} and kind = 'deliveries'`;
    },
    expire: (id: string) => ok("POST", `/v1/notification/silences/${id}:expire`, {}),
  };
}

/** A rule of whose group the first message has arrived, and the next, which reports an end, has failed once and waits. */
async function endingPlace() {
  const place = await groupPlace();
  const { receiver, rule, reportAll, until, server, tenant } = place;
  const { sql } = server.database;
  await rule("r", { sendUpdates: true, grouping: { by: ["source"], waitSec: "0", intervalSec: "1" } });
  await reportAll(["a", "b"]);
  await until("first SENT");
  receiver.answer((_request, response) => response.writeHead(503).end());
  await reportAll(["a"], closed);
  const tried = async () => (await sql`select from due_deliveries where tenant_id = ${tenant.id} and tries > 0`).count;
  const waiting = async () => (await sql`select from due_deliveries where tenant_id = ${tenant.id}`).count;
  await expect.poll(tried, { interval: 20 }).toBe(1);
  return {
    ...place,
    /** Resolves when so many messages wait. */
    waiting: (count: number) => expect.poll(waiting, { interval: 20 }).toBe(count),
    async tried() {
      receiver.answer((_request, response) => response.writeHead(200).end());
      await sql`update due_deliveries set due_ms = 0 where tenant_id = ${tenant.id}`;
      await sql`update due_work set due_ms = 0 where tenant_id = ${tenant.id} and kind = 'deliveries'`;
    },
  };
}

test("a message that reports an end is sent although its group is over by then: no other reports it", async () => {
  const { reportAll, waiting, tried, until, bodies } = await endingPlace();
  await reportAll(["b"], closed);
  await waiting(2);
  await tried();
  await until("first SENT", "members SENT", "clear SENT");
  const [members, end] = bodies().slice(-2);
  const told = (message: typeof members) =>
    message?.alerts.map(({ status, labels }) => `${(labels as { alertname: string }).alertname} ${status}`).sort();
  expect([told(members), told(end)]).toEqual([["a resolved", "b firing"], ["b resolved"]]);
});

test("a message that reports an end is sent although a silence holds all that it reports as firing", async () => {
  const { silence, tried, until } = await endingPlace();
  await silence();
  await tried();
  await until("first SENT", "members SENT");
});

test("a message that waits is held while silences hold all that it reports as firing, and sent as decided after that", async () => {
  const { silence, tried, until, arrive, expire, ok, receiver, made } = await waitingPlace(["a", "b"]);
  const one = await silence({ matchers: ["alertname=a"] });
  const other = await silence({ matchers: ["alertname=b"] });
  const { results } = (await ok("POST", "/v1/events:search", { query: {} })) as {
    results: { occurrences: { id: string }[] }[];
  };
  const occurrenceId = results[0]?.occurrences[0]?.id;
  const explained = () => made("rules/r:explain", { occurrenceId });
  expect(await explained()).toMatchObject({ outcome: "SILENCED" });
  await tried();
  const [held] = await until("first HELD");
  expect([one.id, other.id]).toContain(held?.silenceId);
  expect(receiver.received).toHaveLength(1);
  expect(await explained()).toMatchObject({ outcome: "SILENCED", deliveries: [{ status: "HELD" }] });
  // The one that it names may end later than the other.
  for (const { id } of [one, other]) await expire(id);
  const [, sent] = await arrive(2);
  expect(sent).toMatchObject({ occasion: "first", count: 2 });
  await until("first SENT");
});

test("a message that waits is sent as decided while anything that it reports as firing is not silenced", async () => {
  const { silence, tried, arrive, until } = await waitingPlace(["a", "b"]);
  await silence({ matchers: ["alertname=a"] });
  await tried();
  const [, sent] = await arrive(2);
  expect(sent?.alerts.map(({ status, labels }) => [(labels as { alertname: string }).alertname, status])).toEqual([
    ["a", "firing"],
    ["b", "firing"],
  ]);
  await until("first SENT");
});

test("a message is held at the destination of a silence alone", async () => {
  const place = await waitingPlace(["a"]);
  const { silence, tried, until, made, ok, flushed, deliveries, receiver } = place;
  await made("destinations", { name: "e", type: { webhook: { url: `${receiver.url}/e` } } });
  await ok("PUT", "/v1/notification/rules/r", { destinationNames: ["d", "e"] });
  await silence({ destinationNames: ["d"] });
  await tried();
  await until("first HELD");
  await flushed();
  await until("first HELD", "first SENT");
  expect((await deliveries("?status=SENT")).map(({ destination }) => destination)).toEqual(["e"]);
});

test("a held message is cancelled as soon as the group is over, and nothing says that it ended", async () => {
  const { silence, tried, until, reportAll, flushed, receiver } = await waitingPlace(["a", "b"]);
  await silence();
  await tried();
  await until("first HELD");
  await reportAll(["a", "b"], closed);
  await flushed();
  await until("first CANCELLED", "clear CANCELLED");
  expect(receiver.received).toHaveLength(1);
});

test("a held message is cancelled when all that it reports as firing has ended, though the group goes on", async () => {
  const { silence, tried, until, reportAll, flushed, arrive, deliveries } = await waitingPlace(["a"]);
  await silence({ matchers: ["alertname=a"] });
  await tried();
  await until("first HELD");
  await reportAll(["b"]);
  await flushed();
  const [, second] = await arrive(2);
  expect(second).toMatchObject({ occasion: "members", count: 1, event: { name: "b" } });
  await reportAll(["a"], closed);
  await flushed();
  await until("first CANCELLED", "members SENT", "members SENT");
  expect(await deliveries("?status=CANCELLED")).toMatchObject([{ error: "all that it reports as firing has ended" }]);
});

test("a repetition that a silence holds is dropped", async () => {
  const more = { repeat: true, repeatInterval: "1", repeatWhile: "REPEAT_WHILE_OPEN" };
  const place = await waitingPlace(["a"], more);
  const { silence, tried, deliveries, receiver, tenant, server } = place;
  const { sql } = server.database;
  // The repetition is decided beside the first message that waits.
  const decided = async () => (await sql`select from due_deliveries where tenant_id = ${tenant.id}`).count;
  await expect.poll(decided).toBeGreaterThan(1);
  await silence();
  await tried();
  const told = async () =>
    new Set((await deliveries()).map(({ occasion, status, error }) => `${occasion} ${status} ${error}`));
  await expect
    .poll(told)
    .toEqual(new Set([expect.stringMatching(/^first HELD/), "repeat CANCELLED a silence holds it"]));
  expect(receiver.received).toHaveLength(1);
});
