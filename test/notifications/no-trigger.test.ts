import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { compose } from "../../src/notifications/kinds/kinds.ts";
import type { KindName } from "../../src/notifications/kinds/retry.ts";
import { sampleGroup } from "../../src/notifications/templates/group-notification.ts";
import { destinations, type Site, site } from "./kinds.ts";
import { notificationOf } from "./notifications.ts";

let place: Site;
beforeAll(async () => {
  place = await site({ env: { BELFRY_SMTP_URL: "smtp://127.0.0.1:1", BELFRY_SMTP_SENDER: "b@belfry.example.com" } });
});
afterAll(() => place[Symbol.asyncDispose]());

const { trigger } = notificationOf();
/** Matched by a rule's own matchers, which are no trigger. */
const byMatchers = notificationOf({ trigger: { ...trigger, name: "" } });

test.each(Object.keys(destinations) as KindName[])("a %s names no trigger where none matched", async (kind) => {
  const type = create(DestinationTypeSchema, { type: destinations[kind](place.receiver.url) });
  for (const notification of [byMatchers, sampleGroup(byMatchers, 2)]) {
    const { body } = await compose(type, notification, place.world);
    expect(body).not.toMatch(/\(trigger \)|"trigger": ?""|trigger (?:$|[^:{\w])/m);
  }
});

test("a mail names the trigger that matched, and an event of a rule's matchers has no empty metadata", async () => {
  const mail = create(DestinationTypeSchema, { type: destinations.email("") });
  expect((await compose(mail, notificationOf(), place.world)).body).toContain("page-storage (trigger disks)");
  expect((await compose(mail, byMatchers, place.world)).body).toMatch(/^Rule: page-storage$/m);
  await place.send(destinations.event(""), { notification: byMatchers });
  expect(place.events.at(-1)?.item.metadata).toEqual({ rule: "page-storage", cause: byMatchers.subjectId });
});
