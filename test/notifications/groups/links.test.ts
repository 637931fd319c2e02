import { expect, test } from "vitest";
import { sampleGroup } from "../../../src/notifications/templates/group-notification.ts";
import { eventLinkText, eventUrl } from "../../../src/notifications/templates/variables.ts";
import { metricNotification, notificationOf } from "../notifications.ts";
import { groupPlace } from "./group-place.ts";

type Json = Record<string, unknown>;
const grouping = { by: ["rack"], waitSec: "1", intervalSec: "1" };
const path = "/v1/notification/deliveries";

test("the link of a group's message names the group by its key, which finds its messages and what they say of members", async () => {
  const { rule, report, reportAll, arrive, ok } = await groupPlace();
  await rule("r", { grouping });
  await reportAll(["a", "b"], { metadataFields: { rack: "r1" }, summary: "is down" });
  const [first] = await arrive(1);
  const key = String(first?.group_key);
  expect(first).toMatchObject({ count: 2, url: expect.stringMatching(/\/console\/#\/events\?groupKey=/) });
  expect(new URLSearchParams(String(first?.url).split("?")[1]).get("groupKey")).toBe(key);
  await report("alone", { metadataFields: { rack: "r2" } });
  const [, alone] = await arrive(2);
  const { results } = await ok("POST", "/v1/events:search", { query: {} });
  const occurrence = results.find(({ name }: Json) => name === "alone").occurrences[0].id;
  expect(String(alone?.url)).toMatch(`/console/#/occurrences/${encodeURIComponent(occurrence)}`);

  const of = async (groupKey: string) =>
    (await ok("GET", `${path}?groupKey=${encodeURIComponent(groupKey)}`)).deliveries as Json[];
  const [found, ...others] = await of(key);
  expect(others).toEqual([]);
  expect(found).toMatchObject({ groupKey: key, groupLabels: { rack: "r1" }, memberCount: 2 });
  expect(await of("bm9uZQ")).toEqual([]);
  const { members: listed } = await ok("GET", `${path}/${found?.id}/members`);
  expect(listed).toMatchObject([{ headline: "is down" }, { headline: "is down" }]);
});

test.each([
  ["several occurrences", sampleGroup(notificationOf(), 2), "/events?groupKey=sample", "Show alerts"],
  [
    "one occurrence",
    sampleGroup(notificationOf(), 1),
    `/occurrences/${encodeURIComponent(notificationOf().subjectId)}`,
    "Show event",
  ],
  ["one series", sampleGroup(metricNotification(), 1), "/events?groupKey=sample", "Show alerts"],
  [
    "a summary of it",
    { ...sampleGroup(notificationOf(), 2), summary: { id: "s", count: 2, names: [] } },
    "/deliveries?summary=s",
    "Show notifications",
  ],
])("a group of %s links to %s", (_of, notification, page, words) => {
  expect(eventUrl(notification, "https://b")).toBe(`https://b/console/#${page}`);
  expect(eventLinkText(notification)).toBe(words);
});

test("members of which a message keeps no text have no headline", async () => {
  const { rule, reportAll, arrive, ok } = await groupPlace();
  await rule("r", { grouping: { ...grouping, by: [] } });
  await reportAll(Array.from({ length: 105 }, (_, at) => `alert ${at}`));
  await arrive(1);
  const { deliveries } = await ok("GET", path);
  const { members: listed } = await ok("GET", `${path}/${deliveries[0].id}/members?pageSize=1000`);
  expect(listed).toHaveLength(105);
  expect(listed.filter(({ headline }: Json) => headline !== "")).toHaveLength(100);
});
