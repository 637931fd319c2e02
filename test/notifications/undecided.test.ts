import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ClauseSchema, FilterSchema, Operation, QuerySchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { EntityRow } from "../../src/entities/messages.ts";
import { unpaced } from "../../src/event-loop.ts";
import { triggerFields } from "../../src/notifications/rules/rows.ts";
import { entityQueryTrouble, meansOf } from "../../src/notifications/rules/sources/entity-query.ts";
import { tool } from "../integrations/calls.ts";
import { silencePlace } from "./silences/place.ts";

const trouble = "it is compared with values of up to 2771 characters";
const expression = "[ab]{250}[ab]{250}[ab]{250}[ab]{150}";
/** Longer than an expression of 902 instructions may be compared with in 2,500,000 steps. */
const long = "a".repeat(5000);
const tooLong = "compares a value that is too long for its expression";

test.each([
  // An operator; whether it is undecided; whether a silence holds; whether a rule of its matcher notifies.
  ["=~", true, false, true],
  ["!~", true, false, true],
  ["=", false, false, false],
  ["!=", false, true, true],
] as const)(
  "what `long%s…` leaves undecided is refused by filters and previews, held by no silence, and notified by rules, which say so: %s",
  async (operator, undecided, holds, notifies) => {
    const { server, tenant, call, made, rule, silence, report, deliveries, ok } = await silencePlace();
    const matcher = `long${operator}${expression}`;
    const matchers = ["source=web", matcher];
    await rule("all");
    await rule("own", { triggerNames: [], matchers });
    const held = await silence({ matchers });
    await report("disk", { metadataFields: { long } });

    const told = (await deliveries()).map((each) => [each.rule, (each.silenceId ?? "") !== ""]);
    expect(told.sort()).toEqual(
      notifies
        ? [
            ["all", holds],
            ["own", holds],
          ]
        : [["all", holds]],
    );

    const said = undecided
      ? `${JSON.stringify(matcher).slice(1, -1)}`.replace(expression, `"${expression}": ${trouble}`)
      : "";
    for (const path of [`silences/${held.id}`, "rules/own", "silences", "rules?name=own"])
      expect(JSON.stringify(await ok("GET", `/v1/notification/${path}`)), path).toContain(
        `"trouble":${JSON.stringify(said)}`,
      );
    const type = { event: { query: { matchers } } };
    const { trigger } = await made("triggers", { name: "own trigger", type });
    expect(trigger.trouble).toBe(said);

    const alertmanager = tool(server, tenant.headers);
    const query = `filter=${encodeURIComponent(matcher)}`;
    const asked = [
      await call("POST", "/v1/notification/silences:preview", { matchers }),
      await call("POST", "/v1/notification/triggers:preview", { type }),
      await alertmanager("GET", `/api/v2/alerts?${query}`),
      await alertmanager("GET", `/api/v2/alerts/groups?${query}`),
    ];
    expect(asked.map(({ status }) => status)).toEqual(Array(4).fill(undecided ? 400 : 200));
    for (const { body } of undecided ? asked : []) expect(JSON.stringify(body)).toContain(tooLong);
  },
);

test.each(["filter", "not"])("OP_REGEX on too long a value: searches and watches answer 400 (%s)", async (kind) => {
  const { call, report } = await silencePlace();
  await report("disk", { metadataFields: { long } });
  const filter = { filter: { field: "metadataFields.long", operation: "OP_REGEX", value: expression } };
  const clause = kind === "not" ? { not: { clause: filter } } : filter;
  for (const path of ["search", "group"]) {
    const answer = await call("POST", `/v1/events:${path}`, { query: { clause } });
    expect([path, answer.status, JSON.stringify(answer.body)]).toEqual([path, 400, expect.stringContaining(tooLong)]);
  }
});

test("a trigger whose OP_REGEX leaves an entity undecided takes it, and says so", async () => {
  const value = { kind: { case: "stringValue" as const, value: expression } };
  const filter = create(FilterSchema, { field: "note", operation: Operation.OP_REGEX, value });
  const clause = create(ClauseSchema, { filter });
  const fields = triggerFields("11111111-1111-4111-8111-111111111111", "t");
  const entity = (note: string) => ({ dimensions: {}, metadata: { note }, properties: {} }) as unknown as EntityRow;
  for (const each of [clause, create(ClauseSchema, { noneOf: { clause } })]) {
    const source = { entityQuery: create(QuerySchema, { clause: each }) };
    expect(await meansOf(source, fields)?.(entity(long), unpaced)).toBe(true);
    expect(entityQueryTrouble(source)).toContain(trouble);
  }
});
