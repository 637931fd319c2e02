import { Code, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { EventManagementService } from "#gen/belfry/events/v1/management_service_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { AuditLogService } from "#gen/belfry/tenants/v1/audit_log_service_pb.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const sql = server.database.sql;
const tenant = await testTenant(sql);
const grpc = transport(server.target, "grpc", tenant.headers);
const receiver = createClient(DataReceiverService, grpc);
const events = createClient(EventQueryService, grpc);
const management = createClient(EventManagementService, grpc);
const audit = createClient(AuditLogService, grpc);

const [DEFAULT, OPEN, SUPPRESSED, CLOSED] = [0, 1, 2, 3] as const;
const base = BigInt(Date.now()) - 100_000n;
const at = (seconds: number) => base + BigInt(seconds) * 1000n;
let made = 0;

/** An event of its own; the ids of its latest occurrence. */
async function event(...statuses: number[]): Promise<{ eventId: string; occurrenceId: string; name: string }> {
  made += 1;
  const name = `event ${made}`;
  for (const [i, status] of statuses.entries()) {
    await receiver.putEvents({
      events: [{ name, dimensions: { source: "web-1" }, timestamp: at(i), severity: 4, status: status as never }],
    });
  }
  const { results } = await events.searchEvents({
    query: {
      clause: { filter: { field: "name", operation: 1, value: { kind: { case: "stringValue", value: name } } } },
    },
  } as never);
  const [found] = results;
  return { eventId: found?.id ?? "", occurrenceId: found?.occurrences[0]?.id ?? "", name };
}

const report = ({ name }: { name: string }, timestamp: bigint) =>
  receiver.putEvents({ events: [{ name, dimensions: { source: "web-1" }, timestamp, status: OPEN }] });

async function occurrence({ eventId, occurrenceId }: { eventId: string; occurrenceId: string }) {
  const { result } = await events.getEvent({ id: eventId, occurrenceIds: [occurrenceId] });
  return result?.occurrences[0];
}

describe("status", () => {
  test("any status follows any other, and is in the answers at once", async () => {
    const ids = await event(OPEN);
    for (const status of [SUPPRESSED, CLOSED, DEFAULT, OPEN, CLOSED, SUPPRESSED]) {
      const { statusResponses } = await management.setEventStatus({
        statuses: [{ ...ids, statusWrapper: { status } }],
      });
      expect(statusResponses).toMatchObject([{ ...withoutName(ids), success: true, error: "" }]);
      expect(await occurrence(ids)).toMatchObject({ status });
    }
  });

  test("closing ends the occurrence, and the next report opens another, as after a report that closes", async () => {
    const ids = await event(OPEN);
    await management.setEventStatus({ statuses: [{ ...ids, statusWrapper: { status: CLOSED } }] });
    const closed = await occurrence(ids);
    expect(Number(closed?.endTime)).toBeGreaterThanOrEqual(Number(at(0)));
    await report(ids, (closed?.endTime ?? 0n) + 1n);
    const { result } = await events.getEvent({ id: ids.eventId });
    expect(result).toMatchObject({ count: 2n, occurrences: [{ id: `${ids.eventId}:2` }] });
  });

  test("a report from before the closing counts late in what was closed, once, also after it was opened again", async () => {
    const ids = await event(OPEN);
    await management.setEventStatus({ statuses: [{ ...ids, statusWrapper: { status: CLOSED } }] });
    const endTime = (await occurrence(ids))?.endTime;
    await report(ids, at(50));
    expect(await occurrence(ids)).toMatchObject({ status: CLOSED, endTime, instanceCount: 2n, lastSeen: at(50) });
    expect((await events.getEvent({ id: ids.eventId })).result).toMatchObject({ count: 1n });
    await management.setEventStatus({ statuses: [{ ...ids, statusWrapper: { status: OPEN } }] });
    await report(ids, at(50));
    expect(await occurrence(ids)).toMatchObject({ status: OPEN, instanceCount: 2n });
  });

  test("of an event's occurrences only one may be open: opening another fails that item alone", async () => {
    const ids = await event(OPEN, CLOSED, OPEN);
    const first = { eventId: ids.eventId, occurrenceId: `${ids.eventId}:1` };
    const second = { eventId: ids.eventId, occurrenceId: `${ids.eventId}:2` };
    const set = async (...items: [object, number][]) => {
      const statuses = items.map(([item, status]) => ({ ...item, statusWrapper: { status } }));
      const { statusResponses } = await management.setEventStatus({ statuses } as never);
      return statusResponses.map(({ error }) => error);
    };
    const beside = (number: number) => `occurrence ${number} of the event is not closed; only one may be`;
    for (const status of [OPEN, DEFAULT, SUPPRESSED]) expect(await set([first, status])).toEqual([beside(2)]);
    expect(await occurrence(first)).toMatchObject({ status: CLOSED });
    // In their order.
    expect(
      await set([first, OPEN], [second, CLOSED], [first, OPEN], [second, SUPPRESSED], [first, SUPPRESSED]),
    ).toEqual([beside(2), "", "", beside(1), ""]);
    const { statusResponses } = await management.setEventStatus({ statuses: [{ ...second, acknowledged: true }] });
    expect(statusResponses).toMatchObject([{ success: true }]);
  });

  test("opening an occurrence again takes its end away, and reports go on in it", async () => {
    const ids = await event(OPEN, CLOSED);
    await management.setEventStatus({ statuses: [{ ...ids, statusWrapper: { status: OPEN } }] });
    const opened = await occurrence(ids);
    expect([opened?.status, opened?.endTime]).toEqual([OPEN, undefined]);
    await receiver.putEvents({
      events: [{ name: ids.name, dimensions: { source: "web-1" }, timestamp: at(60), status: OPEN }],
    });
    expect(await occurrence(ids)).toMatchObject({ instanceCount: 3n });
  });

  test("status and acknowledgement are set apart: what is absent stays", async () => {
    const ids = await event(OPEN);
    await management.setEventStatus({ statuses: [{ ...ids, acknowledged: true }] });
    expect(await occurrence(ids)).toMatchObject({ status: OPEN, acknowledged: true });
    await management.setEventStatus({ statuses: [{ ...ids, statusWrapper: { status: SUPPRESSED } }] });
    expect(await occurrence(ids)).toMatchObject({ status: SUPPRESSED, acknowledged: true });
    await management.setEventStatus({ statuses: [{ ...ids, acknowledged: false }] });
    expect(await occurrence(ids)).toMatchObject({ status: SUPPRESSED, acknowledged: false });
  });

  test("items of one call apply in their order, and each fails alone", async () => {
    const [ids, other] = [await event(OPEN), await event(OPEN)];
    const { statusResponses } = await management.setEventStatus({
      statuses: [
        { ...ids, statusWrapper: { status: CLOSED } },
        { ...ids },
        { eventId: ids.eventId, occurrenceId: other.occurrenceId, acknowledged: true },
        { eventId: ids.eventId, occurrenceId: `${ids.eventId}:9`, acknowledged: true },
        { eventId: "nothing", occurrenceId: "nothing:1", acknowledged: true },
        { ...ids, statusWrapper: { status: OPEN }, acknowledged: true },
      ],
    });
    expect(statusResponses.map(({ success, error }) => [success, error])).toEqual([
      [true, ""],
      [false, "acknowledged or statusWrapper is needed"],
      [false, "the event has no such occurrence"],
      [false, "the event has no such occurrence"],
      [false, "the event has no such occurrence"],
      [true, ""],
    ]);
    expect(await occurrence(ids)).toMatchObject({ status: OPEN, acknowledged: true });
  });

  test("changes are in the feed: one row a call, what changed nothing is not reported", async () => {
    const lone = await testTenant(sql);
    const clients = transport(server.target, "grpc", lone.headers);
    await createClient(DataReceiverService, clients).putEvents({
      events: [{ name: "a", dimensions: { source: "x" }, timestamp: at(1), status: OPEN }],
    });
    const { results } = await createClient(EventQueryService, clients).searchEvents({ query: {} });
    const ids = { eventId: results[0]?.id ?? "", occurrenceId: results[0]?.occurrences[0]?.id ?? "" };
    const set = (acknowledged: boolean) =>
      createClient(EventManagementService, clients).setEventStatus({ statuses: [{ ...ids, acknowledged }] });
    const rows = () => sql<{ count: bigint }[]>`select count(*) as count from feed where tenant_id = ${lone.id}`;
    await set(true);
    await set(true);
    expect(await rows()).toMatchObject([{ count: 2n }]);
    await set(false);
    expect(await rows()).toMatchObject([{ count: 3n }]);
  });
});

const withoutName = ({ eventId, occurrenceId }: { eventId: string; occurrenceId: string }) => ({
  eventId,
  occurrenceId,
});

describe("annotations", () => {
  test("are written with author and time, changed, and shown by get, the oldest first", async () => {
    const ids = await event(OPEN);
    const { annotationResponses } = await management.annotateEvents({
      annotations: [
        { ...ids, annotation: "first" },
        { ...ids, annotation: "second" },
      ],
    });
    const [first, second] = annotationResponses.map(({ annotationId }) => annotationId ?? "");
    expect(annotationResponses).toMatchObject([{ success: true }, { success: true }]);
    expect(first).toMatch(/^[a-z0-9]{20}$/);
    await management.annotateEvents({ annotations: [{ ...ids, annotationId: first ?? "", annotation: "changed" }] });
    const { annotations = [] } = (await occurrence(ids)) ?? {};
    expect(annotations).toMatchObject([
      { id: first, annotation: "changed", createdBy: "USER manager" },
      { id: second, annotation: "second" },
    ]);
    const [{ createTime, updateTime } = { createTime: 0n, updateTime: 0n }] = annotations;
    expect(updateTime).toBeGreaterThanOrEqual(createTime);
    expect(Math.abs(Number(createTime) - Date.now())).toBeLessThan(60_000);
  });

  test("fail alone: an unknown event, occurrence or annotation, and a new one without text", async () => {
    const [ids, other] = [await event(OPEN), await event(OPEN)];
    const { annotationResponses: made } = await management.annotateEvents({
      annotations: [{ ...other, annotation: "of another" }],
    });
    const { annotationResponses } = await management.annotateEvents({
      annotations: [
        { ...ids, annotation: "" },
        { eventId: "nothing", occurrenceId: "nothing:1", annotation: "a" },
        { ...ids, annotationId: "nothing", annotation: "a" },
        { ...ids, annotationId: made[0]?.annotationId ?? "", annotation: "a" },
        { ...ids, annotation: "good" },
      ],
    });
    expect(annotationResponses.map(({ success, error }) => [success, error])).toEqual([
      [false, "annotation is needed"],
      [false, "the event has no such occurrence"],
      [false, "the occurrence has no such annotation"],
      [false, "the occurrence has no such annotation"],
      [true, ""],
    ]);
  });

  test("fail alone: a text that is too long, and ids that are", async () => {
    const ids = await event(OPEN);
    const { annotationResponses } = await management.annotateEvents({
      annotations: [
        { ...ids, annotation: "x".repeat(65_537) },
        { ...ids, annotation: "a\0b" },
        { ...ids, annotation: "good", annotationId: "x".repeat(1025) },
        { ...ids, annotation: "good" },
      ],
    });
    const { statusResponses } = await management.setEventStatus({
      statuses: [
        { ...ids, statusWrapper: { status: 99 as never } },
        { ...ids, eventId: "x".repeat(1025), acknowledged: true },
        { ...ids, acknowledged: true },
      ],
    });
    expect([...annotationResponses, ...statusResponses].map(({ error }) => error)).toEqual([
      "annotations[0].annotation: must be at most 65536 bytes",
      "annotations[1].annotation: must not contain NUL",
      "annotations[2].annotationId: must be at most 1024 characters",
      "",
      expect.stringMatching(/^statuses\[0\]\.statusWrapper\.status: must be one of STATUS_DEFAULT \(0\), /),
      "statuses[1].eventId: must be at most 1024 characters",
      "",
    ]);
  });

  test("of one occurrence are at most a thousand", async () => {
    const ids = await event(OPEN);
    const annotations = Array.from({ length: 1000 }, () => ({ ...ids, annotation: "a" }));
    await management.annotateEvents({ annotations });
    const { annotationResponses } = await management.annotateEvents({ annotations: [{ ...ids, annotation: "b" }] });
    expect(annotationResponses).toMatchObject([
      {
        success: false,
        error: "the occurrence has 1000 annotations already, the most that it may have",
      },
    ]);
  });

  test("stand over /v1 as api.md shows them", async () => {
    const { eventId, occurrenceId } = await event(OPEN);
    const call = v1(server.url, tenant.headers);
    const annotate = (annotations: object[]) => call("POST", "/v1/event-management/annotate", { annotations });
    const { body } = await annotate([
      { eventId, occurrenceId, annotation: "a" },
      { eventId, occurrenceId: "x", annotation: "a" },
    ]);
    expect(body).toEqual({
      annotationResponses: [
        { eventId, occurrenceId, annotationId: expect.any(String), success: true, error: "" },
        { eventId, occurrenceId: "x", success: false, error: "the event has no such occurrence" },
      ],
    });
    const status = await call("POST", "/v1/event-management/status", {
      statuses: [{ eventId, occurrenceId, statusWrapper: { status: "STATUS_CLOSED" } }],
    });
    expect(status.body).toEqual({ statusResponses: [{ eventId, occurrenceId, success: true, error: "" }] });
  });
});

test("both leave an audit row that names the events", async () => {
  const ids = await event(OPEN);
  await management.setEventStatus({ statuses: [{ ...ids, acknowledged: true }] });
  await management.annotateEvents({ annotations: [{ ...ids, annotation: "a" }] });
  const { entries } = await audit.listAuditEntries({ pageSize: 2 });
  expect(entries.map(({ rpc, resource }) => [rpc.split("/")[1], resource.endsWith(ids.eventId)])).toEqual([
    ["AnnotateEvents", true],
    ["SetEventStatus", true],
  ]);
});

test("a role that only reads is refused", async () => {
  const headers = await keyHeaders(sql, tenant.id, "USER", "read_only_user");
  const client = createClient(EventManagementService, transport(server.target, "grpc", headers));
  await expect(client.setEventStatus({ statuses: [] })).rejects.toMatchObject({ code: Code.PermissionDenied });
});
