import { readFileSync } from "node:fs";
import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { describedType } from "../../../src/notifications/kinds/kinds.ts";
import { templateVariables } from "../../../src/notifications/templates/alerts.ts";
import { sampleGroup } from "../../../src/notifications/templates/group-notification.ts";
import { jsonMarkup } from "../../../src/notifications/templates/markup.ts";
import {
  newSteps,
  parseTemplate,
  render,
  type Value,
  type Variables,
} from "../../../src/notifications/templates/template.ts";
import { metricNotification, notificationOf } from "../notifications.ts";

/** The first column of the list of numbers, each name as an expression. */
const [, table = ""] =
  /\| variable \| number \|\n\|[-|]+\n([\s\S]*?)\n\n/.exec(readFileSync("docs/webhook-bodies.md", "utf8")) ?? [];
const documented = [...table.matchAll(/^\| (.*?) \|/gm)].flatMap(([, cell = ""]) =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name),
);
const isDocumented = (path: string) =>
  documented.some((name) => new RegExp(`^${name.replaceAll(".", "\\.").replace(/<\w+>/g, ".+")}$`).test(path));

const type = create(DestinationTypeSchema, {
  type: { case: "itsm", value: { baseUrl: "http://a.test", closeState: 7 } },
});
const trigger = { ...metricNotification().trigger, threshold: 90, thresholdType: "max" };
const notifications = [
  notificationOf({ event: { count: 2n ** 40n, metadata: { free: 1.2, mount: "/var", list: [1] } } }),
  metricNotification({ trigger }),
  sampleGroup(notificationOf(), 3),
];

/** All leaves by their paths; lists are of texts and alerts, which hold no number. */
function* leaves(of: Variables, before = ""): Generator<[path: string, value: Value | undefined]> {
  for (const [name, value] of Object.entries(of)) {
    const isMap = typeof value === "object" && value !== null && !Array.isArray(value) && !("text" in value);
    if (isMap) yield* leaves(value as Variables, `${before}${name}.`);
    else yield [before + name, value];
  }
}

async function shownBy(template: string, variables: Variables) {
  const steps = newSteps();
  return await render(parseTemplate(template, steps), variables, jsonMarkup(), { steps, pace: () => undefined });
}

test("outside of quotes the documented variables, and no others, are JSON numbers in the bodies of webhooks", async () => {
  const found = new Map<string, unknown>();
  for (const notification of notifications) {
    const variables = templateVariables(notification, describedType(type), jsonMarkup(), "https://belfry.test");
    for (const [path] of leaves(variables)) {
      const shown = JSON.parse(await shownBy(`{{${path}}}`, variables));
      if (typeof shown === "number") found.set(path, shown);
      else if (shown !== null)
        expect([path, isDocumented(path) && !path.includes("fields") && !path.includes("destination")]).toEqual([
          path,
          false,
        ]);
    }
  }
  expect([...found.keys()].filter((path) => !isDocumented(path))).toEqual([]);
  expect(
    documented.filter(
      (name) =>
        ![...found.keys()].some((path) =>
          new RegExp(`^${name.replaceAll(".", "\\.").replace(/<\w+>/g, ".+")}$`).test(path),
        ),
    ),
  ).toEqual([]);
  expect([found.get("event.count"), found.get("timestamp_ms"), found.get("event.fields.free")]).toEqual([
    3,
    notificationOf().timeMs,
    1.2,
  ]);
});

test("within quotes a number is the text of its digits", async () => {
  const variables = templateVariables(notificationOf(), undefined, jsonMarkup(), "https://belfry.test");
  expect(await shownBy('"{{event.count}}" {{event.count}}', variables)).toBe('"3" 3');
});
