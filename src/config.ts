import { resolve } from "node:path";
import {
  addressRanges,
  baseUrl,
  databaseUrl,
  flag,
  headerNames,
  integer,
  integerOrZero,
  oneOf,
  optional,
  origins,
  readMasterKeys,
  relayUrl,
  type Setting,
  SettingError,
  secondsBySeverity,
  sender,
  serviceNames,
  text,
} from "./setting.ts";

const MiB = 1024 * 1024;
const day = 24 * 3600;

/** Every setting of the service. The order is that of `--help`. */
const settings = {
  host: { env: "BELFRY_HOST", fallback: "localhost", read: text, meaning: "address to listen on" },
  port: { env: "BELFRY_PORT", fallback: "8443", read: integer(0, 65535), meaning: "port; 0 takes a free one" },
  dataDir: {
    env: "BELFRY_DATA_DIR",
    fallback: ".belfry",
    read: (value: string) => resolve(value),
    meaning: "directory of the local CA, the first key and the embedded database",
  },
  databaseUrl: {
    env: "DATABASE_URL",
    fallback: "",
    read: databaseUrl,
    meaning: "PostgreSQL 17 or newer to use; empty starts the embedded one",
  },
  tlsCert: {
    env: "BELFRY_TLS_CERT",
    fallback: "",
    read: optional,
    meaning: "certificate chain, PEM file; empty makes a local CA",
  },
  tlsKey: { env: "BELFRY_TLS_KEY", fallback: "", read: optional, meaning: "private key of the certificate, PEM file" },
  plaintext: {
    env: "BELFRY_PLAINTEXT",
    fallback: "0",
    read: flag,
    meaning: "1 serves HTTP/1.1 and HTTP/2 without TLS, for a server behind a TLS proxy",
  },
  metricsHost: {
    env: "BELFRY_METRICS_HOST",
    fallback: "127.0.0.1",
    read: text,
    meaning: "address of the port of Prometheus' metrics, which asks for no key",
  },
  metricsPort: {
    env: "BELFRY_METRICS_PORT",
    fallback: "",
    read: (value: string) => (value === "" ? undefined : integer(0, 65535)(value)),
    meaning: "port of Prometheus' metrics, usually 9464; empty: none",
  },
  tracesUrl: {
    env: "OTEL_EXPORTER_OTLP_ENDPOINT",
    fallback: "",
    read: baseUrl,
    meaning: "OpenTelemetry collector that traces are sent to, OTLP over HTTP; empty: no traces",
  },
  masterKeys: {
    env: "BELFRY_MASTER_KEYS",
    fallback: "",
    read: readMasterKeys,
    meaning: "keys that protect stored secrets, <id>:<base64>, by commas, the newest first",
  },
  masterKeysFile: {
    env: "BELFRY_MASTER_KEYS_FILE",
    fallback: "",
    read: optional,
    meaning: "the same in a file, a line each; read again when another key is needed",
  },
  corsOrigins: {
    env: "BELFRY_CORS_ORIGINS",
    fallback: "",
    read: origins,
    meaning: "browser origins that may call, by commas; * is any",
  },
  serviceAliases: {
    env: "BELFRY_SERVICE_ALIASES",
    fallback: "",
    read: serviceNames,
    meaning: "foreign names of services, <foreign>=<ours>, by commas, by which they may be called, too",
  },
  keyHeaderAliases: {
    env: "BELFRY_KEY_HEADER_ALIASES",
    fallback: "",
    read: headerNames,
    meaning: "headers, by commas, whose key counts where there is none in service-api-key",
  },
  logLevel: {
    env: "BELFRY_LOG_LEVEL",
    fallback: "info",
    read: oneOf("fatal", "error", "warn", "info", "debug", "trace", "silent"),
    meaning: "least severe log line that is written",
  },
  poolConnectionsMax: {
    env: "BELFRY_POOL_CONNECTIONS_MAX",
    fallback: "20",
    read: integer(5, 1000),
    meaning: "database connections of this process, shared out between kinds of work",
  },
  waitingCallsMax: {
    env: "BELFRY_WAITING_CALLS_MAX",
    fallback: "2000",
    read: integer(1, 1_000_000),
    meaning: "calls in work at once; more are answered 429",
  },
  ingestWaitMsMax: {
    env: "BELFRY_INGEST_WAIT_MS_MAX",
    fallback: "1000",
    read: integer(1, 600_000),
    meaning: "how long models, points and events may wait to be stored, ms; more of them are answered 429",
  },
  statementTimeoutMs: {
    env: "BELFRY_STATEMENT_TIMEOUT_MS",
    fallback: "15000",
    read: integer(10, 3_600_000),
    meaning: "longest time of one SQL statement, ms",
  },
  lockTimeoutMs: {
    env: "BELFRY_LOCK_TIMEOUT_MS",
    fallback: "5000",
    read: integer(10, 3_600_000),
    meaning: "longest wait for a row lock, ms",
  },
  deadlineMsMax: {
    env: "BELFRY_DEADLINE_MS_MAX",
    fallback: "120000",
    read: integer(10, 3_600_000),
    meaning: "longest deadline of a unary call, ms; longer ones are cut to it",
  },
  messageBytesMax: {
    env: "BELFRY_MESSAGE_BYTES_MAX",
    fallback: String(4 * MiB),
    read: integer(1024, 1024 * MiB),
    meaning: "largest request message, bytes, on the wire and again after decompression",
  },
  receiverBytesMax: {
    env: "BELFRY_RECEIVER_BYTES_MAX",
    fallback: String(16 * MiB),
    read: integer(1024, 1024 * MiB),
    meaning: "the same for the data receiver",
  },
  receiverItemsMax: {
    env: "BELFRY_RECEIVER_ITEMS_MAX",
    fallback: "50000",
    read: integer(1, 10_000_000),
    meaning: "most items of a batch of the data receiver; larger ones are to be split",
  },
  bodyBytesMax: {
    env: "BELFRY_BODY_BYTES_MAX",
    fallback: String(128 * MiB),
    read: integer(1024, Number.MAX_SAFE_INTEGER),
    meaning: "memory that the requests in work take, bytes; more are answered 429",
  },
  answerBytesMax: {
    env: "BELFRY_ANSWER_BYTES_MAX",
    fallback: String(256 * MiB),
    read: integer(1024, Number.MAX_SAFE_INTEGER),
    meaning:
      "bytes of answers that wait for their clients, a quarter of them for one connection; more end their answer",
  },
  streamBytesMax: {
    env: "BELFRY_STREAM_BYTES_MAX",
    fallback: String(1024 * MiB),
    read: integer(1024, Number.MAX_SAFE_INTEGER),
    meaning: "largest total of one client stream, bytes",
  },
  streamIdleMs: {
    env: "BELFRY_STREAM_IDLE_MS",
    fallback: "60000",
    read: integer(10, 3_600_000),
    meaning: "longest silence within a request, and longest time that an answer waits for its client, ms",
  },
  streamsMax: {
    env: "BELFRY_STREAMS_MAX",
    fallback: "5000",
    read: integer(10, 1_000_000),
    meaning: "streams that are open at once; more are answered 429",
  },
  connectionsMax: {
    env: "BELFRY_CONNECTIONS_MAX",
    fallback: "10000",
    read: integer(10, 1_000_000),
    meaning: "connections at once; a further one takes the place of one that has asked nothing, or is closed",
  },
  wrongKeysMax: {
    env: "BELFRY_WRONG_KEYS_MAX",
    fallback: "100",
    read: integer(1, 1_000_000_000),
    meaning: "wrong keys a minute from one address (IPv6: /64); further ones are answered a second late",
  },
  leaveMs: {
    env: "BELFRY_LEAVE_MS",
    fallback: "0",
    read: integer(0, 600_000),
    meaning:
      "how long a server that is told to stop still serves, not ready, while load balancers turn away from it, ms",
  },
  drainMs: {
    env: "BELFRY_DRAIN_MS",
    fallback: "10000",
    read: integer(0, 3_600_000),
    meaning: "how long running calls may take to finish when the server stops, ms",
  },
  modelAgeSecMax: {
    env: "BELFRY_MODEL_AGE_SEC_MAX",
    fallback: String(day),
    read: integer(1, 36_500 * day),
    meaning: "oldest timestamp of a model or metric point that is taken, s",
  },
  aheadSecMax: {
    env: "BELFRY_AHEAD_SEC_MAX",
    fallback: "600",
    read: integer(0, 36_500 * day),
    meaning: "how far ahead of now a timestamp may be, s",
  },
  eventRetentionSec: {
    env: "BELFRY_EVENT_RETENTION_SEC",
    fallback: String(90 * day),
    read: integer(3600, 36_500 * day),
    meaning: "how long closed occurrences are kept, and the oldest event timestamp that is taken, s",
  },
  deliveryRetentionSec: {
    env: "BELFRY_DELIVERY_RETENTION_SEC",
    fallback: String(30 * day),
    read: integer(7 * day, 36_500 * day),
    meaning: "how long deliveries that are done are kept, s",
  },
  deliveryWaitSecMax: {
    env: "BELFRY_DELIVERY_WAIT_SEC_MAX",
    fallback: String(3 * day),
    read: integer(3600, 36_500 * day),
    meaning: "how long deliveries wait for a destination that does not answer before they fail, s",
  },
  eventAgeing: {
    env: "BELFRY_EVENT_AGEING",
    fallback: `DEFAULT=${day},DEBUG=${day},INFO=${day},WARNING=${3 * day}`,
    read: secondsBySeverity,
    meaning: "after how many seconds without a report occurrences of a severity close; severities left out never do",
  },
  housekeepingMs: {
    env: "BELFRY_HOUSEKEEPING_MS",
    fallback: "60000",
    read: integer(10, 86_400_000),
    meaning: "how often old occurrences are closed and deleted, ms",
  },
  jobLeaseMs: {
    env: "BELFRY_JOB_LEASE_MS",
    fallback: "10000",
    read: integer(1000, 600_000),
    meaning: "after how long the jobs of a server that has died go to another one, ms",
  },
  publicUrl: {
    env: "BELFRY_PUBLIC_URL",
    fallback: "",
    read: baseUrl,
    meaning: "address of this service as people reach it, for links; empty: the one it listens on",
  },
  outboundAllow: {
    env: "BELFRY_OUTBOUND_ALLOW",
    fallback: "",
    read: addressRanges,
    meaning: "address ranges that are not public and yet may be sent to, by commas",
  },
  outboundTimeoutMs: {
    env: "BELFRY_OUTBOUND_TIMEOUT_MS",
    fallback: "15000",
    read: integer(10, 600_000),
    meaning: "longest time of one request that sends a notification, ms",
  },
  smtpUrl: {
    env: "BELFRY_SMTP_URL",
    fallback: "",
    read: relayUrl,
    meaning: "mail relay, smtp://user:password@host:port or smtps://; empty: no e-mail",
  },
  smtpSender: {
    env: "BELFRY_SMTP_SENDER",
    fallback: "",
    read: sender,
    meaning: "address that e-mails come from, with a name if you like",
  },
  incidentPagingUrl: {
    env: "BELFRY_INCIDENT_PAGING_URL",
    fallback: "https://events.pagerduty.com",
    read: baseUrl,
    meaning: "where incidentPaging destinations send",
  },
  teamChatUrl: {
    env: "BELFRY_TEAM_CHAT_URL",
    fallback: "https://slack.com/api",
    read: baseUrl,
    meaning: "where teamChat destinations send",
  },
  metricRetentionSec: {
    env: "BELFRY_METRIC_RETENTION_SEC",
    fallback: String(400 * day),
    read: integer(day, 36_500 * day),
    meaning: "how long metric points are kept, s",
  },
  seriesMax: {
    env: "BELFRY_SERIES_MAX",
    fallback: "1000000",
    read: integer(1, 1_000_000_000),
    meaning: "metric series that a tenant may have; points of further ones fail",
  },
  resourcesMax: {
    env: "BELFRY_RESOURCES_MAX",
    fallback: "20000",
    read: integer(1, 10_000_000),
    meaning: "triggers, destinations, rules, windows, updaters … of each kind that a tenant may have",
  },
  resourceBytesMax: {
    env: "BELFRY_RESOURCE_BYTES_MAX",
    fallback: String(16 * MiB),
    read: integer(1024, 1024 * MiB),
    meaning: "bytes that those of one kind may hold together",
  },
  entitiesMax: {
    env: "BELFRY_ENTITIES_MAX",
    fallback: "1000000",
    read: integer(1, 1_000_000_000),
    meaning: "entities that a tenant may have; data of further ones fail",
  },
  entityFieldsMax: {
    env: "BELFRY_ENTITY_FIELDS_MAX",
    fallback: "10000",
    read: integer(1, 1_000_000),
    meaning: "names of dimensions, metadata and custom properties of a tenant that are listed; further ones are not",
  },
  eventsMax: {
    env: "BELFRY_EVENTS_MAX",
    fallback: "1000000",
    read: integer(1, 1_000_000_000),
    meaning: "events, each a name on an entity, that a tenant may have; further ones fail",
  },
  annotationsMax: {
    env: "BELFRY_ANNOTATIONS_MAX",
    fallback: "1000",
    read: integer(1, 100_000),
    meaning: "annotations that an occurrence may have; further ones fail",
  },
  idleEntityRetentionSec: {
    env: "BELFRY_IDLE_ENTITY_RETENTION_SEC",
    fallback: String(400 * day),
    read: integerOrZero(day, 36_500 * day),
    meaning: "after how long without data an entity is deleted, s; 0: never",
  },
  deletedEntityRetentionSec: {
    env: "BELFRY_DELETED_ENTITY_RETENTION_SEC",
    fallback: String(30 * day),
    read: integer(day, 36_500 * day),
    meaning: "how long deleted entities are kept, and longer while they have series or events, s",
  },
  auditRetentionSec: {
    env: "BELFRY_AUDIT_RETENTION_SEC",
    fallback: "0",
    read: integer(0, 36_500 * day),
    meaning: "how long rows of the audit log are kept, s; 0 keeps them for ever",
  },
} satisfies Record<string, Setting<unknown>>;

/** The settings of one server, read once at start and handed down. */
export type Config = { readonly [K in keyof typeof settings]: ReturnType<(typeof settings)[K]["read"]> };

/** `; did you mean "…"?` with the name nearest to a wrong one; "" when none is near. */
type Hint = (name: string, known: readonly string[]) => string;

/**
 * Reads every setting from the environment.
 * @throws SettingError that names each wrong setting and its rule; also for an unknown name that starts with BELFRY_.
 */
export function readConfig(env: Record<string, string | undefined>, hint: Hint = () => ""): Config {
  const wrong: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, setting] of Object.entries(settings)) {
    try {
      // An empty variable is one that is not set: as a host it would mean all addresses of the machine.
      values[name] = setting.read(env[setting.env] || setting.fallback);
    } catch (error) {
      if (!(error instanceof SettingError)) throw error;
      wrong.push(`${setting.env} ${error.message}`);
    }
  }
  const known = Object.values(settings).map((setting) => setting.env);
  for (const name of Object.keys(env)) {
    if (!name.startsWith("BELFRY_") || known.includes(name)) continue;
    // One setting has the name that all programs give it, without the prefix.
    const bare = known.find((setting) => name === `BELFRY_${setting}`);
    wrong.push(`${name} is no setting of this version${hint(bare ?? name, known)}`);
  }
  if ((values.tlsCert === undefined) !== (values.tlsKey === undefined)) {
    wrong.push("BELFRY_TLS_CERT and BELFRY_TLS_KEY must be set together");
  }
  if ((values.smtpUrl === undefined) !== (values.smtpSender === undefined)) {
    wrong.push("BELFRY_SMTP_URL and BELFRY_SMTP_SENDER must be set together");
  }
  if (wrong.length > 0) throw new SettingError(wrong.join("; "));
  return values as Config;
}

/** The settings as a table for `--help`, a line each: name, default, meaning. */
export function settingsHelp(): string {
  return Object.values(settings)
    .map(({ env, fallback, meaning }) => `  ${env.padEnd(37)}${(fallback || "(none)").padEnd(12)} ${meaning}`)
    .join("\n");
}
