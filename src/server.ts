import type { DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Logger } from "pino";
import { CredentialService } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { EntityFieldDictionaryService } from "#gen/belfry/dictionary/v1/entity_field_service_pb.ts";
import { EventFieldDictionaryService } from "#gen/belfry/dictionary/v1/event_field_service_pb.ts";
import { MetricDictionaryService } from "#gen/belfry/dictionary/v1/metric_entry_service_pb.ts";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { EventManagementService } from "#gen/belfry/events/v1/management_service_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { EventViewService } from "#gen/belfry/events/v1/view_service_pb.ts";
import { MaintenanceWindowService } from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import { MetricQueryService } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import { CustomPropertyService } from "#gen/belfry/properties/v1/custom_property_service_pb.ts";
import { CustomPropertyUpdaterService } from "#gen/belfry/properties/v1/custom_property_updater_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { UserGroupService } from "#gen/belfry/users/v1/user_group_service_pb.ts";
import { routes } from "#gen/routes.ts";
import { startCallers } from "./auth/callers.ts";
import { checkPermissions } from "./auth/permission.ts";
import type { Config } from "./config/settings.ts";
import { builtConsole } from "./console/built-files.ts";
import { type ConsolePages, consolePages } from "./console/serve.ts";
import { keyring } from "./credentials/keyring.ts";
import { credentialService } from "./credentials/service.ts";
import { databaseClock } from "./db/clock.ts";
import { connect, connectionCounts, type Sql } from "./db/connect.ts";
import { startFormats } from "./db/formats.ts";
import { listener } from "./db/listen.ts";
import {
  entityFieldDictionaryService,
  eventFieldDictionaryService,
  metricDictionaryService,
} from "./dictionary/service.ts";
import { keepsIdentity } from "./entities/earlier-identity.ts";
import { entityCache } from "./entities/entity-cache.ts";
import { entityService } from "./entities/service.ts";
import { storingChanges } from "./events/changes.ts";
import { feedConsumer } from "./events/consumers/feed-consumer.ts";
import { expiryJobs } from "./events/expiry.ts";
import { pruneFeed } from "./events/feed.ts";
import { eventHousekeeping } from "./events/housekeeping.ts";
import { dataBounds } from "./events/ingest.ts";
import { openAlerts } from "./events/open-alerts.ts";
import { eventManagementService, eventQueryService } from "./events/service.ts";
import { eventViewService } from "./events/views.ts";
import { feedNotifications } from "./events/watch/notify-channel.ts";
import { watchHub } from "./events/watch/watch-hub.ts";
import { certifiedNames } from "./http/certificate.ts";
import { type LiveCertificate, liveCertificate } from "./http/live-certificate.ts";
import { type Incoming, openPort } from "./http/port.ts";
import { unreadResponses } from "./http/unread-responses.ts";
import { startIntegrations } from "./integrations/start.ts";
import { startJobs } from "./jobs/start.ts";
import { windowKinds } from "./maintenance/run.ts";
import { maintenanceWindowService } from "./maintenance/service.ts";
import { openWindows } from "./maintenance/windows.ts";
import { factStore } from "./metrics/fact-store.ts";
import { metricQueryService } from "./metrics/service.ts";
import { startMetrics } from "./metrics/start.ts";
import { ruleEngine } from "./notifications/deciding/engine.ts";
import { startNotifications } from "./notifications/start.ts";
import { type PreparedDatabase, preparedDatabase } from "./prepared-database.ts";
import { customPropertyService, customPropertyUpdaterService } from "./properties/service.ts";
import { changedEntities, updaterKinds } from "./properties/updater-job.ts";
import { ingestQueue } from "./receiver/ingest-queue.ts";
import { eventKind, modelKind } from "./receiver/item-kinds.ts";
import { pointKinds } from "./receiver/points.ts";
import { pointReader } from "./receiver/read-points.ts";
import { roomForCalls } from "./receiver/room.ts";
import { dataReceiverService } from "./receiver/service.ts";
import { startRetention } from "./retention.ts";
import { discovery } from "./rpc/discovery.ts";
import { pipeline } from "./rpc/pipeline.ts";
import { requestMemory } from "./rpc/request-memory.ts";
import { startTelemetry } from "./telemetry/start.ts";
import { auditQueue } from "./tenants/audit-queue.ts";
import type { FirstKey } from "./tenants/first-key.ts";
import { tenantServices } from "./tenants/service.ts";
import { userAccountService } from "./users/accounts.ts";
import { userGroupService } from "./users/groups.ts";
import { passwordHasher } from "./users/password.ts";
import { version } from "./version.ts";

/** A server that serves. */
export interface Server {
  /** For example `https://localhost:8443`. */
  readonly url: string;
  /** Certificate of the local CA; undefined when the certificate was configured, and without TLS. */
  readonly caFile: string | undefined;
  /** Where Prometheus' metrics are, for example `http://127.0.0.1:9464/metrics`; undefined when they are not served. */
  readonly metricsUrl: string | undefined;
  /** The metrics of a server that another process opens the port for. */
  readonly metrics?: (() => Promise<string>) | undefined;
  /** Names and addresses that the certificate is valid for; none without TLS. */
  readonly names: readonly string[];
  /** The first manager key; undefined when the database is not the embedded one, or its file was put away. */
  readonly firstKey: FirstKey | undefined;
  /** Whether the database has no tenant yet, so that nothing can be called: of a database of the operator's own. */
  readonly tenantless: boolean;
  /** Connections of clients. */
  connections(): number;
  /** Why this process cannot serve; undefined: it can. */
  notReady(): string | undefined;
  /** Does what a start prints, with a connection to the database. */
  withDatabase<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
  readonly buildConsole: ConsolePages["build"];
  /** Stops in order: clients turn away, the port drains, then the pool, then the embedded database. May be called twice. */
  stop(): Promise<void>;
}

/**
 * Starts everything, from the bottom up. Each thing pushes its stop where it is made; stopping, and a start that fails,
 * undo them in reverse. One straight function on purpose: each step needs what the earlier ones made.
 * @throws StartError in one clear line for what the operator can mend.
 */
export async function startServer(
  config: Config,
  log: Logger,
  { given, followSources = false }: How = {},
): Promise<Server> {
  await using starting = new AsyncDisposableStack();

  // The database, which another process may have prepared.
  const { url, firstKey, tenantless, distributed } = given?.database ?? (await preparedDatabase(config, log, starting));
  const pool = connect(url, { ...config, distributed });
  starting.defer(() => pool.close());
  const replicas = listener(url);
  starting.defer(() => replicas.stop());
  const clock = await databaseClock(pool.system);
  starting.defer(() => clock.stop());
  const formats = await startFormats(pool.system, log);
  starting.defer(() => formats.stop());
  const masterKeys = keyring(config);

  // What every call passes.
  const system = { sql: pool.system, gate: pool.gate };
  const callers = startCallers(system, config);
  starting.defer(() => callers.stop());
  const audit = auditQueue({ ...system, background: pool.background }, clock.nowMs, log, config.auditRetentionSec);
  starting.defer(() => audit.stop());
  // Overload is refused at the door: bodies by their bytes, data by what is being stored (design/load).
  const held = requestMemory(config.bodyBytesMax);
  const untaken = unreadResponses({ bytesMax: config.answerBytesMax, stallMs: config.streamIdleMs });
  starting.defer(() => untaken.stop());
  const ingest = ingestQueue(pool.ingest, {
    batchesMax: connectionCounts(config.poolConnectionsMax).ingest,
    waitMsMax: config.ingestWaitMsMax,
    report: (error) => log.error({ err: error }, "data that came in was not stored"),
  });
  const room = roomForCalls({
    bodies: held,
    answers: untaken,
    ingest,
    checkRules: (tenantId) => matching.check(tenantId),
  });
  const noting = { requestsFd: given?.requestsFd, process: given?.process };
  const limits = { ...noting, streamsMax: config.streamsMax, recordAudit: audit.record };
  const calls = pipeline({ ...callers, ...limits, gate: pool.gate, room: room.ofRpc, log });

  // What rules make of what happens.
  const wakeJobs = () => jobs.wake();
  const rules = ruleEngine(pool.sending, (...due) => notifications.wake(...due), clock.nowMs);
  const { onKeptOpen, onPoints } = rules;
  starting.defer(() => rules.stop());
  const atOnce = Math.max(1, pool.counts.sending - 1);
  const oldForm = () => !formats.begun();
  const matching = feedConsumer(pool.sending, rules.consumer, { nowMs: clock.nowMs, atOnce, log, oldForm });
  starting.defer(() => matching.stop());

  // What metric points are kept in.
  const [known, bounds] = [entityCache(), dataBounds(config)];
  const metrics = await startMetrics(pool.background, config, clock.nowMs, log, { known, bounds, onPoints });
  starting.defer(() => metrics.stop());

  // What happens to occurrences: those here that want to hear of it are notified.
  const watching = watchHub(pool.background);
  starting.defer(() => watching.stop());
  const feeds = feedNotifications(pool.system, replicas, watching);
  starting.defer(() => feeds.stop());
  const storeChanges = storingChanges({
    consumers: [matching],
    oldForm,
    onKeptOpen,
    onStored(tenantId, rows) {
      matching.stored(tenantId, rows);
      feeds.grew(tenantId);
      for (const row of rows) {
        watching.stored(tenantId, row);
        if (row.position % 64n === 0n) pruneFeed(pool.background, tenantId, clock.nowMs()).catch(() => undefined);
      }
    },
  });

  // What goes on in the background, in turns with the other replicas.
  const retention = startRetention(pool, config, { known, nowMs: clock.nowMs, log });
  starting.defer(() => retention.stop());
  const windows = [...windowKinds(rules.windows, wakeJobs), expiryJobs(storeChanges)];
  const onRules = [...rules.kinds, ...matching.kinds];
  const kinds = [...updaterKinds(bounds.fieldsMax), ...onRules, ...windows, ...metrics.kinds];
  const working = { kinds, nowMs: clock.nowMs, log, leaseMs: config.jobLeaseMs };
  const jobs = startJobs(pool, replicas, working);
  starting.defer(() => jobs.stop());

  const happening = { nowMs: clock.nowMs, store: storeChanges, onDeleted: rules.onDeleted, log };
  const housekeeping = eventHousekeeping(pool, config, happening);
  starting.defer(() => housekeeping.stop());

  // What goes out.
  const outgoing = {
    keyring: masterKeys,
    formats,
    nowMs: clock.nowMs,
    store: storeChanges,
    known,
    rules,
    openWindows,
    wakeJobs,
    log,
  };
  const notifications = await startNotifications(pool, replicas, config, outgoing);
  starting.defer(() => notifications.stop());

  // What comes in.
  const models = modelKind(config, clock.nowMs, changedEntities(clock.nowMs, jobs.wake), known, bounds);
  const events = eventKind(config, clock.nowMs, storeChanges, known, bounds);
  const points = pointKinds(config, clock.nowMs, metrics.store);

  // The services. An RPC that none of them has answers code 12.
  const built = new Map<DescService, Partial<ServiceImpl<DescService>>>([
    [DataReceiverService, dataReceiverService({ lanes: ingest, nowMs: clock.nowMs, models, events, points })],
    [EntityService, entityService(pool.sql)],
    [CustomPropertyService, customPropertyService(pool.sql, clock.nowMs, bounds.fieldsMax)],
    [CustomPropertyUpdaterService, customPropertyUpdaterService(pool.sql, config, clock.nowMs, jobs.wake)],
    [MetricQueryService, metricQueryService(pool.sql)],
    [EventQueryService, eventQueryService(pool.sql, watching)],
    [EventManagementService, eventManagementService(pool.sql, clock.nowMs, storeChanges, config.annotationsMax)],
    [EventViewService, eventViewService(pool.sql, clock.nowMs)],
    [
      MaintenanceWindowService,
      maintenanceWindowService(pool.sql, config, { nowMs: clock.nowMs, wake: jobs.wake, hooks: rules.windows }),
    ],
    ...notifications.services,
    [CredentialService, credentialService(pool.sql, config, masterKeys, notifications.hostsInUse)],
    ...tenantServices(pool.sql, config, callers, audit),
    [UserAccountService, userAccountService(pool.sql, config, passwordHasher())],
    [UserGroupService, userGroupService(pool.sql, config)],
    [EntityFieldDictionaryService, entityFieldDictionaryService(pool.sql, config)],
    [MetricDictionaryService, metricDictionaryService(pool.sql, config)],
    [EventFieldDictionaryService, eventFieldDictionaryService(pool.sql, config)],
  ]);
  const declared = [...new Set(routes.map(({ method }): DescService => method.parent))];
  checkPermissions(declared);
  const services = declared.map((service) => ({
    service,
    implementation: calls.implement(service, built.get(service) ?? {}),
  }));

  // What is asked without a key.
  const notReady = () => (given?.machineReady() ? undefined : pool.notReady());
  const serving = () => notReady() === undefined;
  const found = discovery({ services: declared, serving, implement: calls.implementUnauthenticated });

  // Protocols of other tools.
  const stopping = new AbortController();
  const { foreign, ...integrations } = startIntegrations({
    config,
    foreign: calls.foreign,
    room: room.inLane,
    bodies: held,
    lanes: ingest,
    nowMs: clock.nowMs,
    log,
    models,
    events,
    points,
    openAlerts: openAlerts.bind(undefined, pool.sql),
    standing: notifications.standing,
    silences: notifications.silences,
    keepsIdentity: keepsIdentity.bind(undefined, pool.sql),
    facts: factStore(pool.sql),
    stopping: stopping.signal,
  });

  // The port, and what it reports of itself to its operators.
  const pages = consolePages(builtConsole({ ...config, follow: followSources, signal: stopping.signal }), log);
  const tls = given ? given.tls : config.plaintext ? undefined : await liveCertificate(config, log);
  starting.defer(() => tls?.stop());
  let connections = () => 0;
  const telemetry = await startTelemetry(
    config,
    {
      pool,
      jobs,
      metrics,
      notifications,
      matching,
      audit,
      untaken,
      integrations,
      lanes: ingest,
      watches: watching,
      bodies: held,
      streams: calls.openStreams,
      connections: () => connections(),
      certificateEndsMs: () => tls?.endsMs(),
    },
    log,
    given?.process,
  );
  starting.defer(() => telemetry.stop());
  const port = await openPort({
    config,
    tls,
    routes,
    services: [...services, ...found.services],
    admit: calls.admit,
    bodies: held,
    untaken,
    log,
    foreign,
    stopping,
    notReady,
    incoming: given?.incoming,
    ended(record, ...how) {
      calls.ended(record);
      telemetry.ended(record, ...how);
    },
    readers: new Map([[DataReceiverService.method.putMetrics, pointReader(metrics.store.memory, clock.nowMs)]]),
    morePages: pages.serve,
    aliases: { services: config.serviceAliases, keyHeaders: config.keyHeaderAliases },
  });
  connections = port.connections;
  starting.defer(() => ingest.stop());
  starting.defer(() => port.close({ drainMs: config.drainMs }));
  starting.defer(() => calls.endStreams());
  starting.defer(() => port.leave(config.leaveMs));
  starting.defer(() => found.stop());

  log.info({ version, node: process.version }, "serving");
  const running = starting.move();
  let stopped: Promise<void> | undefined;
  return {
    url: port.address.url,
    caFile: tls?.caFile,
    metricsUrl: telemetry.metricsUrl,
    metrics: telemetry.metrics,
    names: tls === undefined ? [] : certifiedNames(tls.cert),
    firstKey,
    tenantless,
    withDatabase: (work) => work(pool.sql),
    buildConsole: pages.build,
    connections: port.connections,
    notReady: pool.notReady,
    stop() {
      stopped ??= running.disposeAsync();
      return stopped;
    },
  };
}

/** What a server is given by the process that owns its port. */
export interface OwnedParts {
  /** Its number. */
  readonly process: number;
  readonly database: PreparedDatabase;
  readonly tls: LiveCertificate | undefined;
  readonly incoming: Incoming;
  /** The descriptor of the file in which it notes its requests, for the line that reports its death; undefined: it does not. */
  readonly requestsFd: number | undefined;
  /** Whether any of the processes is ready. */
  machineReady(): boolean;
}

/** How a server is started. */
export interface How {
  readonly given?: OwnedParts;
  /** Its page is built again when its sources change. */
  readonly followSources?: boolean;
}
