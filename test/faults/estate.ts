import { Status } from "#gen/belfry/events/v1/event_pb.ts";
import { estate, type Report } from "../../bench/load/estate.ts";
import type { Db } from "../../src/db/connect.ts";
import { eventIds } from "../../src/entities/identity.ts";
import type { EventItem } from "../../src/events/ingest.ts";
import { RuleModel } from "../notifications/rule-model.ts";
import type { Beside } from "./beside.ts";
import { type Batch, ledger } from "./ledger.ts";
import { type Arrived, post } from "./notifications.ts";

const entityCount = 200;
const perSec = 8;
const turnMs = 1000;
/** Time before now at which the reports begin: they must not lie ahead, however well they get on. */
const backMs = 3_600_000;
const severe = 4;
/** A condition that is over so soon may end before a server, at which something goes wrong, has sent what told of it. */
const soonMs = 60_000;
const conditionOver = "the condition is over";
const nothingToClear = "nothing was sent that could be cleared";

type Headers = Record<string, string>;

/** Two rules, in the service and in the model: one reports changes, too. */
const rules = {
  severe: {
    trigger: { severity: severe },
    clause: { greaterAndEquals: { field: "severity", value: { numberVal: severe } } },
    sendUpdates: true,
  },
  disks: { trigger: { name: "disk" }, clause: { startsWith: { field: "name", value: "disk" } }, sendUpdates: false },
};

async function setRules(urls: readonly string[], headers: Headers, url: string, model: RuleModel): Promise<void> {
  await post(urls, headers, "notification/destinations", { name: "log", type: { webhook: { url } } });
  for (const [name, { trigger, clause, sendUpdates }] of Object.entries(rules)) {
    await post(urls, headers, "notification/triggers", { name, type: { event: { query: { clause } } } });
    const names = { triggerNames: [name], destinationNames: ["log"] };
    await post(urls, headers, "notification/rules", { name, enabled: true, message: "x", sendUpdates, ...names });
    model.triggers.set(name, trigger);
    const clock = { repeat: false, repeatIntervalSec: 0, repeatWhile: 0 as const, delaySec: 0 };
    const manner = { enabled: true, ...clock, sendUpdates, muteDuringMaintenance: false };
    model.setRule(name, { ...manner, triggers: [name], destinations: ["log"] });
  }
}

/** The next reports, each event once: of two in one request only the last would be reported. */
function* batchesOf(reports: Iterable<Report>): Generator<Report[]> {
  let batch = new Map<string, Report>();
  for (const report of reports) {
    const key = `${report.entity} ${report.name}`;
    if (batch.size === perSec || batch.has(key)) {
      yield [...batch.values()];
      batch = new Map();
    }
    batch.set(key, report);
  }
}

/** An event in one word that begins with its name. */
const keyOf = (tenantId: string, name: string, dimensions: Record<string, string>) =>
  `${name.replaceAll(" ", "_")}/${eventIds(tenantId, dimensions, name).eventId.toString("hex")}`;

/** When what a rule reports an occurrence was decided, and when its condition was over. */
interface Spans {
  toldMs: number[];
  overMs: number[];
}

/** How many deliveries of them may have come to nothing because the condition was over first. */
const overtaken = ({ toldMs, overMs }: Spans) =>
  toldMs.filter((told) => overMs.some((over) => over >= told && over - told < soonMs)).length;

/** Of a line of what was reported: rule, destination and occurrence, and the occasion. */
function partsOf(line: string) {
  const at = line.lastIndexOf(" ");
  return { key: line.slice(0, at), occasion: line.slice(at + 1) };
}

/** By rule, destination and occurrence, the occasions in order. */
function byOccurrence(lines: readonly string[]): Map<string, string> {
  const all = new Map<string, string>();
  for (const { key, occasion } of lines.map(partsOf)) all.set(key, `${all.get(key) ?? ""} ${occasion}`);
  return all;
}

/**
 * An estate that reports its events, one request after the other, of which two rules tell a webhook; and a model of what
 * must be reported.
 */
export async function estateBeside(
  { id: tenantId, manager, agent }: { id: string; manager: Headers; agent: Headers },
  urls: readonly string[],
  seed: number,
  url: string,
) {
  const model = new RuleModel(0);
  await setRules(urls, manager, url, model);
  const { entities, reports } = estate(seed, entityCount);
  const next = batchesOf(reports(perSec));
  const book = ledger();
  const spans = new Map<string, Spans>();
  let overtakenCount = 0;
  /** The model's view of a report, and when it was that something was decided, or that a condition was over. */
  function report(event: string, severity: number, closed: boolean) {
    const nowMs = performance.now();
    const before = model.decided.length;
    model.report(event, severity, closed);
    for (const line of model.decided.slice(before)) {
      const { key, occasion } = partsOf(line);
      const own = spans.get(key) ?? { toldMs: [], overMs: [] };
      spans.set(key, own);
      (occasion === "clear" ? own.overMs : own.toldMs).push(nowMs);
    }
    const number = model.occurrences.get(event)?.number;
    if (closed) for (const name of Object.keys(rules)) spans.get(`${name} log ${event} ${number}`)?.overMs.push(nowMs);
  }
  const startMs = Date.now() - backMs;
  const itemOf = ({ entity, name, type, severity, status, summary, atMs }: Report) => ({
    name,
    type,
    severity,
    status,
    summary,
    body: "",
    metadata: {},
    acknowledged: undefined,
    dimensions: entities[entity]?.dimensions as Record<string, string>,
    timeMs: BigInt(startMs + atMs),
  });
  const beside: Beside = {
    name: "requests of the estate",
    restMs: turnMs,
    async turn(n) {
      const told = next.next().value as Report[];
      const batch: Batch = { kind: "events", shared: false, items: told.map(itemOf) };
      book.sent(batch);
      const events = batch.items.map(({ timeMs, metadata: _, ...rest }) => ({ timestamp: String(timeMs), ...rest }));
      const body = { events };
      const turned = n % 2 === 0 ? urls : urls.toReversed();
      const { succeeded } = (await post(turned, agent, "data-receiver/events", body)) as { succeeded: number };
      if (succeeded !== told.length) throw new Error(`the estate: ${succeeded} of ${told.length} events taken`);
      book.acknowledged(batch);
      for (const { name, dimensions, severity, status } of batch.items as EventItem[])
        report(keyOf(tenantId, name, dimensions), severity, status === Status.CLOSED);
    },
  };

  /**
   * What was stored is what the estate has reported; what was decided is what the model has decided. All of it has arrived,
   * but for what was not sent before its condition was over again.
   */
  async function compare(db: Db, arrived: readonly Arrived[]): Promise<string[]> {
    const wrong = await book.compare(db, tenantId);
    const rows = await db<{ id: string; line: string; status: string; error: string }[]>`
      select d.id, d.status, d.error, concat_ws(' ', d.rule_name, d.destination_name,
          replace(e.name, ' ', '_') || '/' || encode(e.id, 'hex'), d.number, d.occasion) as line
      from delivery_history d join events e on e.tenant_id = ${tenantId} and e.id = d.event_id
      where d.tenant_id = ${tenantId} order by d.created_ms, d.id`;
    const known = new Set(arrived.map(({ id }) => id));
    const found = byOccurrence(rows.map(({ line }) => line));
    const decided = byOccurrence(model.decided);
    for (const key of new Set([...found.keys(), ...decided.keys()])) {
      const [is, should] = [found.get(key), decided.get(key)];
      if (is !== should) wrong.push(`the estate: ${key} was told ${is}, and the model says ${should}`);
    }
    const left = new Map([...spans].map(([key, own]) => [key, overtaken(own)]));
    const told = new Set<string>();
    for (const { id, line, status, error } of rows) {
      const { key, occasion } = partsOf(line);
      const thread = key.slice(key.indexOf(" "));
      if (status === "SENT") {
        told.add(thread);
        if (!known.has(id)) wrong.push(`the estate: ${line} did not arrive`);
      } else if (occasion === "clear" && !told.has(thread) && error === nothingToClear) {
        overtakenCount += 1;
      } else if (occasion !== "clear" && (left.get(key) ?? 0) > 0 && error === conditionOver) {
        left.set(key, (left.get(key) ?? 0) - 1);
        overtakenCount += 1;
      } else {
        wrong.push(`the estate: ${line} is ${status}: ${error}`);
      }
    }
    return wrong;
  }
  return {
    beside,
    compare,
    told: () =>
      `the estate: ${book.counts.acknowledged} reports, ${model.decided.length} deliveries, ${overtakenCount} of them overtaken`,
  };
}
