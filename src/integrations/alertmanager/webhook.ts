import { Code } from "@connectrpc/connect";
import { Permission } from "#gen/belfry/auth/v1/permission_pb.ts";
import { connectErrorBody } from "../../protocols/error-body.ts";
import { passScalar, passValue } from "../../transcoding/json/pass-value.ts";
import { key } from "../../transcoding/json/read-string.ts";
import { colon, endOf, next, numberText, type Scan } from "../../transcoding/json/scan.ts";
import { invalidValue } from "../../wire/status.ts";
import { type Answer, type Integration, json, type OperationCall } from "../integration.ts";
import { malformed } from "./alerts.ts";
import { type AlertList, alertsIn, begins, kindAt } from "./sent-alerts.ts";
import { type AlertForm, type AlertStore, mistakesText, storeAlerts } from "./store-alerts.ts";

/** The webhooks that Alertmanager (version 4) and Grafana send: the alerts of a group, each with its status. */
export function alertmanagerWebhook(parts: AlertStore): Integration {
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

async function post(parts: AlertStore, call: OperationCall, body: Buffer): Promise<Answer> {
  const seen: Seen = { alerts: false, truncatedAlerts: 0 };
  const mistakes = await storeAlerts(parts, body, webhookForm(seen), call);
  if (seen.truncatedAlerts > 0)
    call.log.warn(
      { tenant: call.tenantId, truncatedAlerts: seen.truncatedAlerts },
      "a webhook left alerts out: raise max_alerts where it is sent",
    );
  if (mistakes.count > 0) throw invalidValue("", mistakesText(mistakes));
  return json(200, {});
}

/** What was found in a webhook beside its alerts. */
interface Seen {
  alerts: boolean;
  truncatedAlerts: number;
}

/** An object whose member `alerts` lists them. */
const webhookForm = (seen: Seen): AlertForm => ({
  *alerts(s, list) {
    if (next(s) !== 123) throw noList();
    let count = 0;
    for (let more = begins(s, 125); more; more = !endOf(s, 125, "}")) {
      count += 1;
      if (count % portionMembers === 0) yield;
      next(s);
      yield* member(s, list, seen);
    }
    if (!seen.alerts) throw noList();
  },
  nameOf: (place) => `alerts[${place}]`,
  malformed,
  noJson: () => invalidValue("", "the body must be JSON"),
  // A firing one has no end: Alertmanager repeats it every few hours, and says when it is resolved.
  timesOf: ({ status, startsAtMs, endsAtMs }, nowMs) =>
    status === "resolved"
      ? { firing: false, timeMs: endsAtMs ?? nowMs }
      : { firing: true, timeMs: startsAtMs ?? nowMs },
});

const portionMembers = 5000;
const noList = () => invalidValue("alerts", "must be a list");

function* member(s: Scan, list: AlertList, seen: Seen): ReturnType<AlertForm["alerts"]> {
  const name = key(s);
  colon(s);
  if (name === "alerts") {
    if (kindAt(s) !== "array") throw noList();
    seen.alerts = true;
    yield* alertsIn(s, list);
  } else if (name === "truncatedAlerts" && kindAt(s) === "number") seen.truncatedAlerts = Number(numberText(s));
  else if (!passScalar(s)) yield* passValue(s);
}
