import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { compose } from "../../src/notifications/kinds/kinds.ts";
import { destinations, fileSite, type TypeInit } from "./kinds.ts";
import { eventId, metricNotification, notificationOf } from "./notifications.ts";

const place = await fileSite();

const event = (value: object = {}): TypeInit => {
  const type = destinations.event("");
  return { case: "event", value: { ...(type.value as object), ...value } };
};

test("an open event is made on the cause's entity, with the time of the notification", async () => {
  const outcome = await place.send(event());
  expect(outcome).toMatchObject({ result: "sent", state: { name: "from disk-full" } });
  expect(place.events).toEqual([
    {
      tenantId: "019abcde-0000-7000-8000-0000000000aa",
      chain: ["page-storage"],
      item: {
        name: "from disk-full",
        type: "derived",
        summary: "Disk /var is 97 % full",
        body: "by page-storage",
        dimensions: { host: "web-1", site: "Köln" },
        timeMs: BigInt(Date.UTC(2026, 10, 22, 10, 0, 0)),
        severity: Severity.CRITICAL,
        status: Status.OPEN,
        acknowledged: undefined,
        metadata: { rule: "page-storage", trigger: "disks", cause: `${eventId}:2` },
      },
    },
  ]);
});

test("a second try of the same notification makes the same event", async () => {
  await place.send(event());
  await place.send(event());
  expect(place.events[1]).toEqual(place.events[0]);
});

test("when the cause is over it is closed, under the name that it was opened by", async () => {
  const notification = notificationOf({ occasion: "clear", clear: true, event: { name: "renamed" } });
  await place.send(event(), { notification, state: { name: "from disk-full" } });
  expect(place.events[0]?.item).toMatchObject({ name: "from disk-full", status: Status.CLOSED });
});

describe("rules that cause each other", () => {
  test("are told to the event, the latest last", async () => {
    await place.send(event(), { notification: notificationOf({ chain: ["a", "b"] }) });
    expect(place.events[0]?.chain).toEqual(["a", "b", "page-storage"]);
  });

  test("end after five", async () => {
    const chain = ["a", "b", "c", "d"];
    expect((await place.send(event(), { notification: notificationOf({ chain }) })).result).toBe("sent");
    const outcome = await place.send(event(), { notification: notificationOf({ chain: [...chain, "e"] }) });
    expect(outcome).toMatchObject({ result: "failed", reason: "chained", course: "fail" });
    expect(place.events).toHaveLength(1);
  });
});

describe("texts are cut to what events may have", () => {
  const itemOf = () => place.events[0]?.item;

  test("a name has 255 characters on one line", async () => {
    await place.send(event({ nameTemplate: `a\n\t${"😀".repeat(300)}` }));
    expect(itemOf()?.name).toBe(`a ${"😀".repeat(253)}`);
  });

  test("a type likewise", async () => {
    await place.send(event({ typeTemplate: "x".repeat(300) }));
    expect(itemOf()?.type).toBe("x".repeat(255));
  });

  test("a summary has 128 characters", async () => {
    await place.send(event({ summaryTemplate: "é".repeat(200) }));
    expect(itemOf()?.summary).toBe("é".repeat(128));
  });

  test("a body has 65,536 bytes", async () => {
    await place.send(event({ bodyTemplate: "a{{{event.body}}}" }), {
      notification: notificationOf({ event: { body: "é".repeat(32_768) } }),
    });
    expect(itemOf()?.body).toBe(`a${"é".repeat(32_767)}`);
  });

  test("NUL and lone surrogates come into none", async () => {
    const notification = notificationOf({ event: { summary: "a\0b\ud800c" } });
    await place.send(event(), { notification });
    expect(itemOf()?.summary).toBe("ab\ufffdc");
  });
});

test("a name that renders empty fails, and says so", async () => {
  const outcome = await place.send(event({ nameTemplate: "{{event.nothing}}" }));
  expect(outcome).toMatchObject({ result: "failed", reason: "bad_request", course: "fail" });
  expect(outcome.answer).toMatch(/^event\.name: /);
  expect(place.events).toEqual([]);
});

test("an entity without dimensions has no events", async () => {
  const { entity } = metricNotification();
  const notification = metricNotification({ entity: { ...entity, dimensions: {} } });
  expect(await place.send(event({ nameTemplate: "x" }), { notification })).toMatchObject({ reason: "bad_request" });
});

test("what it would send is its name, summary and body", async () => {
  const type = create(DestinationTypeSchema, { type: event() });
  expect(await compose(type, notificationOf(), place.world)).toEqual({
    subject: "from disk-full",
    body: "Disk /var is 97 % full\n\nby page-storage",
  });
});
