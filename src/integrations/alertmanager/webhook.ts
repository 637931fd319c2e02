import { Code } from "@connectrpc/connect";
import { Permission } from "#gen/belfry/auth/v1/permission_pb.ts";
import { connectErrorBody } from "../../http/rpc-error-body.ts";
import { bodyText } from "../../transcoding/body.ts";
import { invalidValue, refusalOf } from "../../wire/status.ts";
import { type Answer, type Call, type Integration, json } from "../integration.ts";
import { type Alert, readAlert } from "./alerts.ts";
import { type AlertStore, mistakesText, storeAlerts } from "./store-alerts.ts";

/** The webhooks that Alertmanager (version 4) and Grafana send: the alerts of a group, each with its status. */
export function alertmanagerWebhook(parts: AlertStore & { alertsMax: number }): Integration {
  return {
    name: "alertmanager-webhook",
    refuse: (error, status) => ({
      // Both send again what failed with 5xx, and give up the rest.
      status:
        error.code === Code.Unimplemented
          ? 501
          : error.code === Code.ResourceExhausted && status === 429
            ? 503
            : status,
      headers: { "content-type": "application/json" },
      body: connectErrorBody(error),
    }),
    operations: [
      {
        name: "post",
        routes: [{ method: "POST", path: "/v1/integrations/alertmanager-webhook" }],
        permission: Permission.INGEST,
        lane: "events",
        body: "unpacked",
        serve: (call, body) => post(parts, call, body),
      },
    ],
  };
}

async function post(parts: AlertStore & { alertsMax: number }, call: Call, body: Buffer): Promise<Answer> {
  call.reserve(body.length * 2);
  const { alerts: list, truncatedAlerts } = membersOf(bodyText(body));
  if (list.length > parts.alertsMax)
    throw refusalOf(Code.ResourceExhausted, 413, `a request may have at most ${parts.alertsMax} alerts`);
  const mistakes: string[] = [];
  const firing = new Map<Alert, boolean>();
  for (const [place, item] of list.entries()) {
    const wait = call.pace();
    if (wait !== undefined) await wait;
    const read = readAlert(item, `alerts[${place}]`);
    if ("message" in read) mistakes.push(read.message);
    else firing.set(read, (item as { status?: unknown }).status !== "resolved");
  }
  // A firing one has no end: Alertmanager repeats it every few hours, and says when it is resolved.
  const timesOf = (alert: Alert, nowMs: number) =>
    firing.get(alert)
      ? { firing: true, timeMs: alert.startsAtMs ?? nowMs }
      : { firing: false, timeMs: alert.endsAtMs ?? nowMs };
  call.count("refused", mistakes.length);
  mistakes.push(...(await storeAlerts(parts, [...firing.keys()], timesOf, call, body.length)));
  if (truncatedAlerts > 0)
    call.log.warn(
      { tenant: call.tenantId, truncatedAlerts },
      "a webhook left alerts out: raise max_alerts where it is sent",
    );
  if (mistakes.length > 0) throw invalidValue("", mistakesText(mistakes));
  return json(200, {});
}

function membersOf(text: string): { alerts: unknown[]; truncatedAlerts: number } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalidValue("", "the body must be JSON");
  }
  const { alerts, truncatedAlerts } = (value ?? {}) as { alerts?: unknown; truncatedAlerts?: unknown };
  if (!Array.isArray(alerts)) throw invalidValue("alerts", "must be a list");
  return { alerts, truncatedAlerts: typeof truncatedAlerts === "number" ? truncatedAlerts : 0 };
}
