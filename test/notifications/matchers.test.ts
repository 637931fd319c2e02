import { expect, test } from "vitest";
import { silencePlace } from "./silences/place.ts";

const severe = (matchers: string[]) => ({ event: { query: { matchers } } });

test("a trigger of matchers matches open occurrences whose labels all hold, with their case", async () => {
  const { made, report, arrived, rule, until, call } = await silencePlace();
  await made("triggers", { name: "t", type: severe(['alertname="Disk"', "source=~we.+", "severity!=info"]) });
  await rule("r", { triggerNames: ["t"] });
  for (const name of ["disk", "DISK", "Fan"]) await report(name);
  await report("Disk", { status: "STATUS_CLOSED" });
  await report("Disk", { severity: "SEVERITY_INFO", dimensions: { source: "web-2" } });
  await report("Disk", { dimensions: { source: "web-3" } });
  await until("first SENT");
  expect(arrived()).toMatchObject([{ name: "Disk", severity: 4 }]);
  for (const [query, message] of [
    [{ matchers: ["a=b", "c"] }, "type.event.query.matchers[1]: column 2: =, !=, =~ or !~ follows the name"],
    [
      { matchers: ["a=b"], clause: { equals: { field: "name", value: { stringVal: "x" } } } },
      "type.event.query.matchers: must be left out beside clause",
    ],
    [{}, "type.event.query.clause: is required"],
  ] as const)
    expect(await call("POST", "/v1/notification/triggers", { name: "no", type: { event: { query } } })).toMatchObject({
      status: 400,
      body: { code: 3, message },
    });
});

test("a rule's own matchers are a condition beside its triggers, which explain names", async () => {
  const { made, ok, report, rule, until, call } = await silencePlace();
  await made("triggers", { name: "t", type: severe(["alertname=Other"]) });
  await rule("r", { triggerNames: ["t"], matchers: ["alertname=Disk", "tier=db"] });
  await rule("alone", { triggerNames: [], matchers: ['alertname="Fan"'] });
  await report("Disk", { metadataFields: { tier: "db" } });
  await report("Other");
  await report("Fan");
  const sent = await until("first SENT", "first SENT", "first SENT");
  expect(new Set(sent.map((each) => `${each.rule} ${each.trigger}`))).toEqual(new Set(["r ", "r t", "alone "]));
  const { results } = await ok("POST", "/v1/events:search", { query: {} });
  const of = (name: string) => results.find((each: { name: string }) => each.name === name).occurrences[0].id as string;
  const explained = await made("rules/r:explain", { occurrenceId: of("Fan") });
  expect(explained.steps).toMatchObject([{}, { path: "type.event.query.matchers[0]" }, { path: "matchers[0]" }]);
  expect(await call("POST", "/v1/notification/rules", { name: "no", matchers: ["a=~("] })).toMatchObject({
    body: { message: "matchers[0]: column 4: missing closing )" },
  });
  expect((await ok("GET", "/v1/notification/rules/r")).rule.matchers).toEqual(["alertname=Disk", "tier=db"]);
});

test("matchers under not are a part of a clause", async () => {
  const { made, report, arrived, rule, until } = await silencePlace();
  const clause = {
    and: {
      clauses: [
        { equals: { field: "severity", value: { stringVal: "SEVERITY_ERROR" } } },
        { not: { clause: { matchers: { matchers: ["tier=~db|web"] } } } },
      ],
    },
  };
  await made("triggers", { name: "t", type: { event: { query: { clause } } } });
  await rule("r", { triggerNames: ["t"] });
  await report("one", { metadataFields: { tier: "db" } });
  await report("two", { metadataFields: { tier: "cache" } });
  await until("first SENT");
  expect(arrived()).toMatchObject([{ name: "two" }]);
});

test("explain names the silence that holds a notification, who made it and why", async () => {
  const { made, ok, report, rule, silence, until } = await silencePlace();
  await rule("r");
  const { id } = await silence({ comment: "new disks", createdBy: "ops" });
  await report("Disk");
  await until("first HELD");
  const { results } = await ok("POST", "/v1/events:search", { query: {} });
  const explained = await made("rules/r:explain", { occurrenceId: results[0].occurrences[0].id });
  expect(explained).toMatchObject({ outcome: "SILENCED" });
  expect(explained.steps).toContainEqual(
    expect.objectContaining({
      step: "silence",
      silenceId: id,
      author: "USER manager",
      createdBy: "ops",
      comment: "new disks",
      untilTime: expect.any(String),
    }),
  );
});
