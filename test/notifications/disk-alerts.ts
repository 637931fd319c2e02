import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import type { AlertSnapshot, Notification } from "../../src/notifications/subject/notification.ts";
import { aboutGroup } from "../../src/notifications/templates/group-notification.ts";
import { metricNotification, notificationOf } from "./notifications.ts";

/** Says nothing of its own. */
const rule = { ...notificationOf().rule, name: "disks", message: "" };

/** An alert of Prometheus about a disk. */
export function diskFull(host: string, mountpoint: string, percent: number): Notification {
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

type Member = readonly [host: string, mountpoint: string, percent: number, resolved: boolean];

/** The message of a group of such alerts. */
export function groupOf(members: readonly Member[], cluster = "eu-1"): Notification {
  const startMs = Date.UTC(2026, 10, 22, 9, 30, 0);
  const alerts = members.map(([host, mountpoint, percent, resolved]): AlertSnapshot => {
    const { entity } = diskFull(host, mountpoint, percent);
    return {
      subjectId: `${host} ${mountpoint}`,
      resolved,
      headline: `${mountpoint} is ${percent} % full`,
      severity: Severity.CRITICAL,
      labels: { alertname: "DiskFull", severity: "critical", cluster, mountpoint, instance: host, job: "node" },
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
    labels: { alertname: "DiskFull", cluster },
    commonLabels: { alertname: "DiskFull", cluster, severity: "critical", job: "node" },
    commonAnnotations: { runbook_url: "https://wiki.example.com/disk-full" },
    beyond: false,
    firing: alerts.length - resolved,
    resolved,
    severity: Severity.CRITICAL,
    acknowledged: false,
    alerts,
  });
}

/** Two that fire and one that has ended. */
const three: readonly Member[] = [
  ["db-1", "/var", 97, false],
  ["web-1", "/", 91, false],
  ["web-2", "/var", 93, true],
];

const firing = diskFull("web-1", "/var", 93);
const series = metricNotification();
/** What the page of default messages shows. */
export const samples: readonly [title: string, notification: Notification][] = [
  ["An alert", firing],
  ["Its end", { ...firing, occasion: "clear", clear: true }],
  ["A group", groupOf(three)],
  ["The end of a group", groupOf(three.map(([host, mountpoint, percent]) => [host, mountpoint, percent, true]))],
  ["A metric", { ...series, rule, entity: firing.entity }],
];
