import { fileURLToPath } from "node:url";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import type { AlertSnapshot } from "../../src/notifications/delivery-snapshot.ts";
import { aboutGroup } from "../../src/notifications/group-notification.ts";
import { compose } from "../../src/notifications/kinds.ts";
import type { Notification } from "../../src/notifications/notification.ts";
import { destinations, type Site, site } from "./kinds.ts";
import { metricNotification, notificationOf } from "./notifications.ts";

let place: Site;
beforeAll(async () => {
  place = await site();
});
afterAll(async () => {
  await place[Symbol.asyncDispose]();
});

const page = fileURLToPath(new URL("../../docs/default-messages.md", import.meta.url));
const rule = { ...notificationOf().rule, name: "disks", message: "" };

function diskFull(host: string, mountpoint: string, percent: number): Notification {
  return notificationOf({
    rule,
    trigger: { ...notificationOf().trigger, name: "" },
    entity: {
      id: "ZW50aXR5LWlkLW9mLTI4LWNoYXI=",
      name: `instance=${host}:9100,job=node`,
      dimensions: { instance: `${host}:9100`, job: "node" },
    },
    event: {
      name: "DiskFull",
      type: "alert",
      dedupKey: "0".repeat(64),
      severity: Severity.CRITICAL,
      summary: `${mountpoint} is ${percent} % full`,
      body: "It grows by 2 GB an hour.",
      count: 12n,
      metadata: {
        alertname: "DiskFull",
        severity: "critical",
        cluster: "eu-1",
        mountpoint,
        "annotation.summary": `${mountpoint} is ${percent} % full`,
        "annotation.runbook_url": "https://wiki.example.com/disk-full",
        generatorURL: "https://prometheus.example.com/graph?g0.expr=disk",
      },
    },
  });
}

function groupOf(
  members: readonly [host: string, mountpoint: string, percent: number, resolved: boolean][],
): Notification {
  const startMs = Date.UTC(2026, 10, 22, 9, 30, 0);
  const alerts = members.map(([host, mountpoint, percent, resolved]): AlertSnapshot => {
    const { entity } = diskFull(host, mountpoint, percent);
    return {
      subjectId: `${host} ${mountpoint}`,
      resolved,
      headline: `${mountpoint} is ${percent} % full`,
      severity: Severity.CRITICAL,
      labels: { alertname: "DiskFull", severity: "critical", cluster: "eu-1", mountpoint, instance: host, job: "node" },
      annotations: {},
      startMs,
      endMs: resolved ? startMs + 1_800_000 : null,
      generatorURL: "",
      fingerprint: "0".repeat(16),
      entity,
      triggerName: "",
    };
  });
  const resolved = alerts.filter((alert) => alert.resolved).length;
  const { id, occasion, timeMs, tenant, chain, trigger } = diskFull("web-1", "/var", 93);
  const base = { id, occasion, timeMs, tenant, chain, trigger, rule, clear: resolved === alerts.length };
  return aboutGroup(base, {
    key: "a0b1",
    labels: { alertname: "DiskFull", cluster: "eu-1" },
    commonLabels: { alertname: "DiskFull", cluster: "eu-1", severity: "critical", job: "node" },
    commonAnnotations: { runbook_url: "https://wiki.example.com/disk-full" },
    beyond: false,
    firing: alerts.length - resolved,
    resolved,
    severity: Severity.CRITICAL,
    acknowledged: false,
    alerts,
  });
}

const three: Parameters<typeof groupOf>[0] = [
  ["db-1", "/var", 97, false],
  ["web-1", "/", 91, false],
  ["web-2", "/var", 93, true],
];
const firing = diskFull("web-1", "/var", 93);
const series = metricNotification();
const samples: readonly [title: string, notification: Notification][] = [
  ["An alert", firing],
  ["Its end", { ...firing, occasion: "clear", clear: true }],
  ["A group", groupOf(three)],
  ["The end of a group", groupOf(three.map(([host, mountpoint, percent]) => [host, mountpoint, percent, true]))],
  ["A metric", { ...series, rule, entity: firing.entity }],
];
const kinds = ["email", "teamChat", "officeChat", "incidentPaging", "itsm"] as const;
const spoken = {
  email: "E-mail",
  teamChat: "Slack",
  officeChat: "Teams",
  incidentPaging: "PagerDuty",
  itsm: "ServiceNow",
};

const introduction = `# Default messages

What each kind is sent by a rule without a \`message\`, to a destination without texts of its own, as \`:test\` and previews show it. The
alerts are made up. [Templates](templates.md) say otherwise.
`;

test("the page of default messages shows what is sent", async () => {
  const parts = [introduction];
  for (const kind of kinds) {
    parts.push(`## ${spoken[kind]}\n`);
    const { value, ...type } = destinations[kind](place.receiver.url) as { value: object; case: typeof kind };
    const plain = { ...type, value: { ...value, text: "", shortDescription: "" } } as never;
    for (const [title, notification] of samples) {
      const { subject, body } = await compose(
        create(DestinationTypeSchema, { type: plain }),
        notification,
        place.world,
      );
      const text = [subject, body]
        .filter((part) => part !== "")
        .join("\n\n")
        .trim();
      parts.push(`### ${spoken[kind]}: ${title.charAt(0).toLowerCase()}${title.slice(1)}\n\n\`\`\`\n${text}\n\`\`\`\n`);
    }
  }
  await expect(`${parts.join("\n")}`).toMatchFileSnapshot(page);
});
