import { Code, ConnectError } from "@connectrpc/connect";
import { Permission } from "#gen/belfry/auth/v1/permission_pb.ts";
import type { AskedLabels, OpenAlert } from "../../events/open-alerts.ts";
import type { AlertStates } from "../../notifications/api/silences/alert-states.ts";
import type { SilenceDoor } from "../../notifications/api/silences/door.ts";
import { next, takeNull } from "../../transcoding/json/scan.ts";
import { type Answer, type Integration, json, type Operation, type OperationCall } from "../integration.ts";
import { malformed } from "./alerts.ts";
import { asked, groupListing, listing, receiver } from "./listing.ts";
import { alertsIn } from "./sent-alerts.ts";
import { silenceOperations } from "./silences.ts";
import { type AlertForm, type AlertStore, checkJsonType, mistakesText, storeAlerts } from "./store-alerts.ts";
import { timeText } from "./times.ts";

/** What Alertmanager's API works with here. */
export interface AlertmanagerParts extends AlertStore {
  /** What is open and has the labels that are asked for, in pages. */
  open(tenantId: string, asked: AskedLabels): AsyncIterable<readonly OpenAlert[]>;
  /** How notifications about it stand, and the names of all destinations that rules notify. */
  standing(tenantId: string): Promise<{ states: AlertStates; receivers: readonly string[] }>;
  silences: SilenceDoor;
}

const languages = { filter: "MATCHER", receiver: "EXPRESSION" } as const;

/** The version of Alertmanager whose API this is. */
const apiVersion = "0.25.0";
const believedMs = 300_000;
const msMax = 253_402_300_799_999;

/** Alertmanager's API, version 2: what Prometheus, vmalert, Grafana, Loki and Mimir send alerts to, and amtool and karma read. */
export function alertmanager(parts: AlertmanagerParts): Integration {
  const started = timeText(Date.now());
  const list = (call: OperationCall, listed: typeof listing) =>
    answered(async () => {
      const { matchers, isAsked } = asked(call);
      const { states } = await parts.standing(call.tenantId);
      const open = parts.open(call.tenantId, { matchers, path: "filter", pace: call.pace });
      const body = await begun(listed(open, states, isAsked, call));
      return { status: 200, headers: { "content-type": "application/json" }, body };
    });
  const reads = (name: string, path: string, serve: (call: OperationCall) => Answer | Promise<Answer>): Operation => ({
    name,
    routes: [{ method: "GET", path: `/api/v2${path}` }],
    permission: Permission.READ,
    serve: async (call) => serve(call),
  });
  return {
    name: "alertmanager",
    below: "/api/v2",
    refuse: (error, status) => {
      // Senders give up what is refused, except where it is the server's fault.
      const own = error.code === Code.ResourceExhausted && status === 429 ? 503 : status;
      return json(own, { code: own, message: error.rawMessage });
    },
    operations: [
      {
        name: "postAlerts",
        routes: [{ method: "POST", path: "/api/v2/alerts" }],
        permission: Permission.INGEST,
        lane: "events",
        body: "unpacked",
        serve: (call, body) => postAlerts(parts, call, body),
      },
      { ...reads("getAlerts", "/alerts", (call) => list(call, listing)), languages },
      { ...reads("getAlertGroups", "/alerts/groups", (call) => list(call, groupListing)), languages },
      reads("getReceivers", "/receivers", async ({ tenantId }) => {
        const { receivers } = await parts.standing(tenantId);
        return json(200, [receiver, ...receivers.map((name) => ({ name }))]);
      }),
      reads("getStatus", "/status", () => json(200, statusOf(started))),
      ...silenceOperations(parts.silences),
    ],
  };
}

/** Alertmanager's handlers answer mistakes in a query with a JSON string. */
async function answered(make: () => Promise<Answer>): Promise<Answer> {
  try {
    return await make();
  } catch (error) {
    if (error instanceof ConnectError && error.code === Code.InvalidArgument) return json(400, error.rawMessage);
    throw error;
  }
}

/** The same texts, once the first is there: what goes wrong before it is answered with its status. */
async function begun(texts: AsyncGenerator<string>): Promise<AsyncGenerator<string>> {
  const first = await texts.next();
  async function* all() {
    try {
      if (!first.done) yield first.value;
      yield* texts;
    } finally {
      await texts.return(undefined);
    }
  }
  return all();
}

const statusOf = (started: string) => ({
  cluster: { name: "", status: "disabled", peers: [] },
  versionInfo: { version: apiVersion, revision: "", branch: "", buildUser: "", buildDate: "", goVersion: "" },
  config: { original: "" },
  uptime: started,
});

async function postAlerts(parts: AlertmanagerParts, call: OperationCall, body: Buffer): Promise<Answer> {
  checkJsonType(call.headers["content-type"]);
  if (body.length === 0) return json(422, { code: 602, message: "alerts in body is required" });
  const mistakes = await storeAlerts(parts, body, listForm, call);
  if (mistakes.schema !== undefined) return json(422, mistakes.schema);
  return mistakes.count === 0 ? { status: 200 } : json(400, mistakesText(mistakes));
}

/** A JSON list of alerts, or `null`. */
const listForm: AlertForm = {
  *alerts(s, list) {
    next(s);
    if (!takeNull(s)) yield* alertsIn(s, list);
  },
  nameOf: (place) => `alerts.${place}`,
  malformed,
  noJson: () => malformed("invalid JSON"),
  // An alert fires until its end; without one it is believed for five minutes, as Alertmanager does.
  timesOf({ startsAtMs, endsAtMs }, nowMs) {
    const endMs = Math.min(endsAtMs ?? nowMs + believedMs, msMax);
    return endMs > nowMs
      ? { firing: true, timeMs: startsAtMs ?? nowMs, expiresAtMs: endMs }
      : { firing: false, timeMs: endMs };
  },
};
