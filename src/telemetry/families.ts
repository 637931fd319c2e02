import type { Pool } from "../db/connect.ts";
import type { FeedConsumer } from "../events/consumers/feed-consumer.ts";
import type { WatchHub } from "../events/watch/watch-hub.ts";
import type { Histogram } from "../histogram.ts";
import type { startIntegrations } from "../integrations/start.ts";
import type { Jobs } from "../jobs/start.ts";
import type { MetricServices } from "../metrics/start.ts";
import type { Notifications } from "../notifications/start.ts";
import type { IngestQueue } from "../receiver/ingest-queue.ts";
import { codeName } from "../rpc/log.ts";
import type { AuditQueue } from "../tenants/audit-queue.ts";
import { version } from "../version.ts";
import type { RequestCounts } from "./requests.ts";

/** Whatever counts something. Each answers what it has counted; nothing is asked of the database. */
export interface Sources {
  readonly pool: Pick<Pool, "stats" | "gate" | "disk" | "workers">;
  readonly lanes: Pick<IngestQueue, "stats">;
  readonly jobs: Pick<Jobs, "stats" | "backlogs">;
  readonly metrics: Pick<MetricServices, "stats">;
  readonly notifications: Pick<Notifications, "stats">;
  readonly matching: Pick<FeedConsumer, "stats">;
  readonly watches: Pick<WatchHub, "stats">;
  readonly integrations: Pick<ReturnType<typeof startIntegrations>, "stats">;
  readonly audit: Pick<AuditQueue, "stats">;
  readonly streams: () => number;
  readonly bodies: { readonly used: number };
  readonly untaken: { readonly used: number };
  /** Connections of clients. */
  readonly connections: () => number;
  /** When the server's certificate ends, ms since 1970; undefined without TLS. */
  readonly certificateEndsMs: () => number | undefined;
  /** Lines of the log that could not be written. */
  readonly lostLogLines: () => number;
}

type Labels = Readonly<Record<string, string>>;

/** One value, or the ranges that values fell into. */
export type Sample = readonly [labels: Labels, value: number | Histogram];

/** A metric of Prometheus: its samples are read when they are asked for. */
export interface Family {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  read(): Iterable<Sample>;
}

const gauge = (name: string, help: string, read: Family["read"]): Family => ({ name, type: "gauge", help, read });
const counter = (name: string, help: string, read: Family["read"]): Family => ({ name, type: "counter", help, read });
const ranges = (name: string, help: string, read: Family["read"]): Family => ({ name, type: "histogram", help, read });

/** A sample for each entry, under the label `name`. */
function by<K extends string, V>(name: string, entries: Iterable<readonly [K, V]>, value: (entry: V) => Sample[1]) {
  return Array.from(entries, ([key, entry]): Sample => [{ [name]: key }, value(entry)]);
}

const one = (value: number): Sample[] => [[{}, value]];

/** Every metric of ours, by what it is about. No label holds what a tenant has named. */
export function families(sources: Sources, requests: RequestCounts): Family[] {
  return [
    gauge("belfry_build_info", "Always 1; the label is the version.", () => [[{ version }, 1]]),
    counter("belfry_log_lost_lines_total", "Lines of the log that were lost: they could not be written.", () =>
      one(sources.lostLogLines()),
    ),
    ...requestFamilies(requests),
    ...integrationFamilies(requests, sources),
    ...portFamilies(sources),
    ...databaseFamilies(sources),
    ...ingestFamilies(sources),
    ...jobFamilies(sources),
    ...matchingFamilies(sources),
    ...deliveryFamilies(sources),
  ];
}

function requestFamilies(requests: RequestCounts): Family[] {
  return [
    counter("belfry_rpc_requests_total", "Calls that have ended, by RPC, protocol and gRPC code.", () =>
      Array.from(requests.calls()).flatMap(({ rpc, protocol, codes }) =>
        Array.from(codes, ([code, count]): Sample => [{ rpc, protocol, code: codeName(code) }, count]),
      ),
    ),
    ranges("belfry_rpc_duration_seconds", "How long calls took, streams for as long as they were open.", () =>
      Array.from(requests.calls(), ({ rpc, protocol, tookSec }): Sample => [{ rpc, protocol }, tookSec]),
    ),
    counter("belfry_http_other_requests_total", "Requests that called no RPC; status 0: their client left.", () =>
      Array.from(requests.others(), ([status, count]): Sample => [{ status: String(status) }, count]),
    ),
  ];
}

function integrationFamilies(requests: RequestCounts, { integrations }: Sources): Family[] {
  return [
    counter("belfry_integration_requests_total", "Requests over other tools' protocols, by HTTP status.", () =>
      Array.from(requests.integrations()).flatMap(({ integration, operation, statuses }) =>
        Array.from(statuses, ([status, count]): Sample => [{ integration, operation, status: String(status) }, count]),
      ),
    ),
    ranges("belfry_integration_duration_seconds", "How long they took.", () =>
      Array.from(
        requests.integrations(),
        ({ integration, operation, tookSec }): Sample => [{ integration, operation }, tookSec],
      ),
    ),
    counter("belfry_integration_items_total", "What they held: stored, refused or skipped.", () =>
      Array.from(integrations.stats(), ({ integration, outcome, items }): Sample => [{ integration, outcome }, items]),
    ),
  ];
}

function portFamilies(sources: Sources): Family[] {
  const { streams, bodies, untaken, connections, watches, audit, certificateEndsMs } = sources;
  return [
    gauge("belfry_connections", "Connections of clients.", () => one(connections())),
    gauge("belfry_streams", "Streams that are open.", () => one(streams())),
    gauge("belfry_request_bytes", "Memory that requests in work take.", () => one(bodies.used)),
    gauge("belfry_untaken_answer_bytes", "Bytes of answers that wait for their clients.", () => one(untaken.used)),
    gauge("belfry_watches", "Watches of events.", () => one(watches.stats().watchers)),
    gauge("belfry_watched_tenants", "Tenants whose events are watched.", () => one(watches.stats().tenants)),
    gauge("belfry_audit_waiting_rows", "Rows that wait to be written to the audit log.", () =>
      one(audit.stats().waiting),
    ),
    counter("belfry_audit_lost_rows_total", "Rows of the audit log that were written to the log instead.", () =>
      one(audit.stats().lost),
    ),
    gauge("belfry_certificate_expiry_timestamp_seconds", "When the certificate of the server ends.", () => {
      const endsMs = certificateEndsMs();
      return endsMs === undefined ? [] : one(endsMs / 1000);
    }),
  ];
}

function databaseFamilies({ pool }: Sources): Family[] {
  const pooled = (name: string, help: string, read: "max" | "open" | "busy" | "waiting") =>
    gauge(name, help, () => by("pool", pool.stats(), (stats) => stats[read]));
  return [
    gauge("belfry_database_up", "1 while the database answers.", () => one(pool.gate.open ? 1 : 0)),
    gauge("belfry_database_worker_up", "1 while a worker of the database's cluster answers.", () =>
      by("worker", pool.workers?.stats() ?? [], (up) => (up ? 1 : 0)),
    ),
    gauge("belfry_database_disk_full", "1 while the database has no room to store anything.", () =>
      one(pool.disk.full ? 1 : 0),
    ),
    gauge("belfry_calls", "Calls in work at the database.", () => one(pool.gate.calls())),
    pooled("belfry_pool_connections_max", "Database connections that a kind of work may have.", "max"),
    pooled("belfry_pool_connections_open", "Database connections that are open.", "open"),
    pooled("belfry_pool_connections_busy", "Database connections with a statement or transaction.", "busy"),
    pooled("belfry_pool_waiting_statements", "Statements and transactions that wait for a connection.", "waiting"),
  ];
}

function ingestFamilies({ lanes, metrics }: Sources): Family[] {
  const ofKind =
    (read: (stats: ReturnType<IngestQueue["stats"]> extends Map<string, infer S> ? S : never) => Sample[1]) => () =>
      by("kind", lanes.stats(), read);
  return [
    counter(
      "belfry_ingest_items_total",
      "Models, points and events that were stored.",
      ofKind(({ items }) => items),
    ),
    counter(
      "belfry_ingest_parts_total",
      "Requests, and parts of them, that were stored.",
      ofKind(({ parts }) => parts),
    ),
    counter(
      "belfry_ingest_refused_total",
      "Requests refused for want of time.",
      ofKind(({ refused }) => refused),
    ),
    ranges(
      "belfry_ingest_commit_seconds",
      "How long group commits took.",
      ofKind(({ commitSec }) => commitSec),
    ),
    gauge(
      "belfry_ingest_waiting_items",
      "Items that wait to be stored.",
      ofKind(({ waiting }) => waiting),
    ),
    gauge(
      "belfry_ingest_running_commits",
      "Group commits under way.",
      ofKind(({ running }) => running),
    ),
    counter("belfry_merged_points_total", "Points that merging has moved.", () => one(metrics.stats().mergedPoints)),
    gauge("belfry_known_series", "Metric series that are known in memory.", () => one(metrics.stats().knownSeries)),
  ];
}

function jobFamilies({ jobs }: Sources): Family[] {
  const backlog = (name: string, help: string, read: (backlog: ReturnType<Jobs["backlogs"]>[number]) => number) =>
    gauge(name, `${help} Counted each minute by one server of all.`, () =>
      Array.from(jobs.backlogs(), (each): Sample => [{ kind: each.kind }, read(each)]),
    );
  return [
    ranges("belfry_job_run_seconds", "How long runs of background jobs took.", () =>
      by("kind", jobs.stats(), ({ runSec }) => runSec),
    ),
    counter("belfry_jobs_done_total", "Background jobs that were done.", () =>
      by("kind", jobs.stats(), (of) => of.jobs),
    ),
    counter("belfry_job_run_failures_total", "Runs of background jobs that failed, and are tried again.", () =>
      by("kind", jobs.stats(), ({ failed }) => failed),
    ),
    gauge("belfry_running_jobs", "Runs of background jobs under way.", () =>
      by("kind", jobs.stats(), ({ running }) => running),
    ),
    backlog("belfry_due_jobs", "Background jobs that could be done now.", ({ due }) => due),
    backlog("belfry_failing_jobs", "Background jobs that have failed at least once.", ({ failing }) => failing),
    backlog("belfry_oldest_job_seconds", "How long the oldest job waits.", ({ oldestMs }) => oldestMs / 1000),
  ];
}

function matchingFamilies({ matching }: Sources): Family[] {
  return [
    counter("belfry_late_matched_changes_total", "Changes of events that rules have looked at.", () =>
      one(matching.stats().facts),
    ),
    counter(
      "belfry_matching_set_aside_changes_total",
      "Changes of events that were set aside, because matching them failed again and again.",
      () => one(matching.stats().setAside),
    ),
    ranges("belfry_matching_late_seconds", "How long after they were stored changes were looked at.", () => [
      [{}, matching.stats().lateSec],
    ]),
  ];
}

function deliveryFamilies({ notifications }: Sources): Family[] {
  const stats = () => notifications.stats();
  return [
    counter("belfry_deliveries_total", "Results of deliveries; pending: another try follows.", () =>
      Array.from(stats().results, ([status, count]): Sample => [{ status: status.toLowerCase() }, count]),
    ),
    counter("belfry_delivery_tries_total", "Tries by kind of destination and outcome.", () =>
      Array.from(stats().tries).flatMap(([kind, { outcomes }]) =>
        Array.from(outcomes, ([outcome, count]): Sample => [{ kind, outcome }, count]),
      ),
    ),
    ranges("belfry_delivery_try_seconds", "How long tries took.", () =>
      by("kind", stats().tries, ({ tookSec }) => tookSec),
    ),
    ranges("belfry_delivery_late_seconds", "How long deliveries were due before they were claimed.", () => [
      [{}, stats().lateSec],
    ]),
    gauge("belfry_running_delivery_tries", "Tries under way.", () => one(stats().running)),
  ];
}
