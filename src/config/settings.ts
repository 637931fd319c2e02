import { resolve } from "node:path";
import { fixedLimits } from "./fixed-limits.ts";
import {
  addressRanges,
  anyText,
  baseUrl,
  databaseUrl,
  duration,
  durationSec,
  flag,
  headerNames,
  integer,
  integerOrAuto,
  labelNames,
  listenAddress,
  oneOf,
  optional,
  origins,
  readMasterKeys,
  relayUrl,
  retentionSec,
  type Setting,
  SettingError,
  secondsBySeverity,
  sender,
  serviceNames,
} from "./parsers.ts";

/** Every setting of the service: name in `Config`, variable, default as text, reader, meaning. The order is that of `--help`. */
// biome-ignore format: a row each
const rows = {
  host: ["BELFRY_HOST", "localhost", anyText, "address to listen on"],
  port: ["BELFRY_PORT", "8443", integer(0, 65535), "port; 0 takes a free one"],
  dataDir: ["BELFRY_DATA_DIR", ".belfry", (value: string) => resolve(value), "directory of the local CA, the first key and the embedded database"],
  databaseUrl: ["DATABASE_URL", "", databaseUrl, "PostgreSQL 17 or newer to use; without it the embedded one is started"],
  tlsCert: ["BELFRY_TLS_CERT", "", optional, "certificate chain, PEM file; without it a local CA is made"],
  tlsKey: ["BELFRY_TLS_KEY", "", optional, "private key of the certificate, PEM file"],
  plaintext: ["BELFRY_PLAINTEXT", "0", flag, "1 serves HTTP/1.1 and HTTP/2 without TLS, for a server behind a TLS proxy"],
  metricsAddress: ["BELFRY_METRICS_ADDRESS", "", listenAddress, "where Prometheus' metrics are served without a key, usually 127.0.0.1:9464; without it they are not"],
  tracesUrl: ["OTEL_EXPORTER_OTLP_ENDPOINT", "", baseUrl, "OpenTelemetry collector that traces are sent to, OTLP over HTTP; without it there are no traces"],
  masterKeys: ["BELFRY_MASTER_KEYS", "", readMasterKeys, "keys that encrypt stored secrets, <id>:<base64>, comma-separated, the newest first"],
  masterKeysFile: ["BELFRY_MASTER_KEYS_FILE", "", optional, "the same in a file, a line each; read again when another key is needed"],
  corsOrigins: ["BELFRY_CORS_ORIGINS", "", origins, "browser origins that may call, comma-separated; * is any"],
  serviceAliases: ["BELFRY_SERVICE_ALIASES", "", serviceNames, "other names of services, <other>=<ours>, comma-separated"],
  keyHeaderAliases: ["BELFRY_KEY_HEADER_ALIASES", "", headerNames, "headers, comma-separated, that may carry the key instead of service-api-key"],
  sessionIdleMs: ["BELFRY_SESSION_IDLE_MAX", "12h", duration("5m", "365d"), "after how long without a use a session of the console ends"],
  sessionAgeMsMax: ["BELFRY_SESSION_AGE_MAX", "7d", duration("5m", "365d"), "after how long a session of the console ends in any case"],
  logLevel: ["BELFRY_LOG_LEVEL", "info", oneOf("fatal", "error", "warn", "info", "debug", "trace", "silent"), "least severe log line that is written"],
  processes: ["BELFRY_PROCESSES", "auto", integerOrAuto(1, 128), "processes that serve the port; auto: as many as processors, memory and database connections suit"],
  poolConnectionsMax: ["BELFRY_POOL_CONNECTIONS_MAX", "20", integer(5, 1000), "database connections of a process, shared out between kinds of work"],
  ingestWaitMsMax: ["BELFRY_INGEST_WAIT", "1s", duration("1ms", "10m"), "how long models, points and events may wait to be stored; more of them are answered 429"],
  receiverItemsMax: ["BELFRY_RECEIVER_ITEMS_MAX", "50000", integer(1, 10_000_000), "most items of a batch of the data receiver; larger ones are refused"],
  leaveMs: ["BELFRY_SHUTDOWN_DELAY", "0s", duration("0s", "10m"), "after a stop signal the server keeps serving, with /readyz failing, for this long"],
  drainMs: ["BELFRY_SHUTDOWN_TIMEOUT", "10s", duration("0s", "1h"), "how long running calls may take to finish when the server stops"],
  modelAgeSecMax: ["BELFRY_DATA_AGE_MAX", "24h", durationSec("1s", "36500d"), "oldest timestamp of a model or metric point that is accepted"],
  aheadSecMax: ["BELFRY_DATA_AHEAD_MAX", "10m", durationSec("0s", "36500d"), "how far ahead of now a timestamp may be"],
  eventRetentionSec: ["BELFRY_EVENT_RETENTION", "90d", durationSec("1h", "36500d"), "how long closed occurrences are kept, and the oldest event timestamp that is accepted"],
  eventAgeing: ["BELFRY_EVENT_AGEING", "DEFAULT=1d,DEBUG=1d,INFO=1d,WARNING=3d", secondsBySeverity, "after how long without a report occurrences of a severity close; severities left out never do"],
  metricRetentionSec: ["BELFRY_METRIC_RETENTION", "400d", durationSec("1d", "36500d"), "how long metric points are kept"],
  deliveryRetentionSec: ["BELFRY_DELIVERY_RETENTION", "30d", durationSec("7d", "36500d"), "how long finished deliveries are kept"],
  idleEntityRetentionSec: ["BELFRY_IDLE_ENTITY_RETENTION", "400d", retentionSec("1d", "36500d"), "after how long without data an entity is deleted"],
  auditRetentionSec: ["BELFRY_AUDIT_RETENTION", "forever", retentionSec("1s", "36500d"), "how long rows of the audit log are kept"],
  seriesMax: ["BELFRY_SERIES_MAX", "1000000", integer(1, 1_000_000_000), "metric series that a tenant may have; points of further ones fail"],
  entitiesMax: ["BELFRY_ENTITIES_MAX", "1000000", integer(1, 1_000_000_000), "entities that a tenant may have; data of further ones fail"],
  eventsMax: ["BELFRY_EVENTS_MAX", "1000000", integer(1, 1_000_000_000), "events, each a name on an entity, that a tenant may have; further ones fail"],
  resourcesMax: ["BELFRY_RESOURCES_MAX", "20000", integer(1, 10_000_000), "triggers, destinations, rules, windows, updaters … of each kind that a tenant may have"],
  entityLabels: ["BELFRY_ENTITY_LABELS", "job,instance", labelNames, "labels of Prometheus' series and alerts that are dimensions of the entity, comma-separated; the others are labels"],
  publicUrl: ["BELFRY_PUBLIC_URL", "", baseUrl, "address of this service as people reach it, for links; without it the one it listens on"],
  outboundAllow: ["BELFRY_OUTBOUND_ALLOW", "", addressRanges, "address ranges that are not public and yet may be sent to, comma-separated"],
  outboundTimeoutMs: ["BELFRY_OUTBOUND_TIMEOUT", "15s", duration("10ms", "10m"), "longest time of one request that sends a notification"],
  smtpUrl: ["BELFRY_SMTP_URL", "", relayUrl, "mail relay, smtp://user:password@host:port or smtps://; without it no e-mail is sent"],
  smtpSender: ["BELFRY_SMTP_SENDER", "", sender, "address that e-mails come from, with a name if you like"],
  incidentPagingUrl: ["BELFRY_INCIDENT_PAGING_URL", "https://events.pagerduty.com", baseUrl, "where incidentPaging destinations send"],
  teamChatUrl: ["BELFRY_TEAM_CHAT_URL", "https://slack.com/api", baseUrl, "where teamChat destinations send"],
} satisfies Record<string, Setting<unknown>>;

/** The settings of one server, read once at start and handed down, with the limits that are fixed. */
export type Config = { readonly [K in keyof typeof rows]: ReturnType<(typeof rows)[K][2]> } & Readonly<
  typeof fixedLimits
>;

/** `; did you mean "…"?` with the name nearest to a wrong one; "" when none is near. */
type Hint = (name: string, known: readonly string[]) => string;

/**
 * Reads every setting from the environment.
 * @throws SettingError that names each wrong setting and its rule; also for an unknown name that starts with BELFRY_.
 */
export function readConfig(env: Record<string, string | undefined>, hint: Hint = () => ""): Config {
  const wrong: string[] = [];
  const values: Record<string, unknown> = { ...fixedLimits };
  for (const [name, [variable, fallback, read]] of Object.entries(rows)) {
    try {
      // An empty variable is one that is not set: as a host it would mean all addresses of the machine.
      values[name] = read(env[variable] || fallback);
    } catch (error) {
      if (!(error instanceof SettingError)) throw error;
      wrong.push(`${variable} ${error.message}`);
    }
  }
  wrong.push(...unknownNames(env, hint));
  if ((values.tlsCert === undefined) !== (values.tlsKey === undefined)) {
    wrong.push("BELFRY_TLS_CERT and BELFRY_TLS_KEY must be set together");
  }
  if ((values.smtpUrl === undefined) !== (values.smtpSender === undefined)) {
    wrong.push("BELFRY_SMTP_URL and BELFRY_SMTP_SENDER must be set together");
  }
  if (wrong.length > 0) throw new SettingError(wrong.join("; "));
  return values as Config;
}

/** Names each variable that begins with BELFRY_ and is no setting. */
function unknownNames(env: Record<string, string | undefined>, hint: Hint): string[] {
  const known = Object.values(rows).map(([variable]) => variable);
  return Object.keys(env).flatMap((name) => {
    if (!name.startsWith("BELFRY_") || known.includes(name)) return [];
    // One setting has the name that all programs give it, without the prefix.
    const bare = known.find((setting) => name === `BELFRY_${setting}`);
    return [`${name} is no setting of this version${hint(bare ?? name, known)}`];
  });
}

/** The settings as a table for `--help`, a line each: name, default, meaning. */
export function settingsHelp(): string {
  return Object.values(rows)
    .map(([variable, fallback, , meaning]) => `  ${variable.padEnd(30)}${(fallback || "(none)").padEnd(12)} ${meaning}`)
    .join("\n");
}
