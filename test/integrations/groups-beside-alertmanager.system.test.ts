import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { startAlertmanager } from "../faults/alerts.ts";
import { httpReceiver } from "../support/receivers.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { tool } from "./calls.ts";
import { installed } from "./programs.ts";

type Json = Record<string, unknown>;

const grouping = { by: ["alertname", "cluster"], waitSec: 2, intervalSec: 4 };

interface Step {
  readonly atSec: number;
  readonly fire?: readonly Json[];
  readonly end?: readonly Json[];
}

const of = (cluster: string, instance: string, more: Json = {}) => ({
  alertname: "Down",
  cluster,
  instance,
  job: "node",
  ...more,
});
const a1 = of("a", "1");
const a2 = of("a", "2", { severity: "critical" });
const a3 = of("a", "10", { job: "api" });
const b1 = of("b", "1");
const other = { alertname: "Other", instance: "1" };

/** What happens, in seconds, each moment well away from a flush. */
const story: readonly Step[] = [
  { atSec: 0, fire: [a1, a2, b1, other] },
  { atSec: 0.5, fire: [a3] },
  { atSec: 4, end: [a2] },
  { atSec: 8, fire: [a2] },
  { atSec: 12, end: [a1, a2, a3, other] },
  { atSec: 16, fire: [a1] },
  { atSec: 20.5, end: [b1, a1] },
];
const lastSec = 30;

/** A body without what no two servers share. */
function masked({ groupKey: _, externalURL: __, receiver: ___, alerts, ...body }: Json) {
  const plain = (alerts as Json[]).map(({ fingerprint: _, startsAt: __, endsAt: ___, ...alert }) => alert);
  return { ...body, alerts: plain };
}

describe.skipIf(!installed("prometheus-alertmanager", "amtool"))("Debian's Alertmanager beside this one", async () => {
  const stack = new AsyncDisposableStack();
  afterAll(() => stack.disposeAsync());
  const server = await testServer();
  const { headers } = await testTenant(server.database.sql);

  test("the same alerts, labels and intervals make the same bodies", async () => {
    const [theirs, ours] = [await httpReceiver(), await httpReceiver()];
    stack.use(theirs);
    stack.use(ours);
    const route = {
      receiver: "hook",
      group_by: grouping.by,
      group_wait: `${grouping.waitSec}s`,
      group_interval: `${grouping.intervalSec}s`,
    };
    const receivers = [{ name: "hook", webhook_configs: [{ url: `${theirs.url}/hook`, send_resolved: true }] }];
    const there = await startAlertmanager(
      stack,
      [],
      { "service-api-key": "none" },
      { route: { ...route, repeat_interval: "1h" }, receivers },
    );
    const call = v1(server.url, headers);
    const made = async (path: string, body: Json) =>
      expect(await call("POST", `/v1/notification/${path}`, body)).toMatchObject({ status: 200 });
    const webhook = { url: `${ours.url}/hook`, format: "WEBHOOK_FORMAT_ALERTMANAGER" };
    await made("destinations", { name: "hook", type: { webhook } });
    await made("rules", {
      name: "r",
      enabled: true,
      matchers: ['alertname=~".+"'],
      destinationNames: ["hook"],
      sendUpdates: true,
      grouping: { ...grouping, waitSec: String(grouping.waitSec), intervalSec: String(grouping.intervalSec) },
    });
    const here = tool(server, headers);
    const startMs = Date.now();
    for (const { atSec, fire = [], end = [] } of story) {
      await sleep(Math.max(0, startMs + atSec * 1000 - Date.now()));
      const now = new Date();
      const later = new Date(now.getTime() + 3_600_000).toISOString();
      const annotations = { summary: 'it is <down> & "out"' };
      const alerts = [
        ...fire.map((labels) => ({
          labels,
          annotations,
          startsAt: now.toISOString(),
          endsAt: later,
          generatorURL: "http://prometheus/graph",
        })),
        ...end.map((labels) => ({
          labels,
          annotations,
          endsAt: now.toISOString(),
          generatorURL: "http://prometheus/graph",
        })),
      ];
      const sent = fetch(`${there}/api/v2/alerts`, {
        method: "POST",
        body: JSON.stringify(alerts),
        headers: { "content-type": "application/json" },
      });
      expect([(await here("POST", "/api/v2/alerts", alerts)).status, (await sent).status]).toEqual([200, 200]);
    }
    await sleep(Math.max(0, startMs + lastSec * 1000 - Date.now()));
    const bodies = ({ received }: typeof ours) =>
      Map.groupBy(
        received.map(({ body }) => masked(JSON.parse(body) as Json)),
        ({ groupLabels }: Json) => JSON.stringify(groupLabels),
      );
    expect(Object.fromEntries(bodies(ours))).toEqual(Object.fromEntries(bodies(theirs)));
    expect(bodies(ours).size).toBe(3);
  });
});
