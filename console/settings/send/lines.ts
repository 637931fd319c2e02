/** The server that the lines are for, as the person's browser reaches it. */
export interface Place {
  /** As in `https://belfry.example.com:8443`. */
  readonly origin: string;
  /** With the port, always. */
  readonly host: string;
  /** Programs need the certificate of the server's own authority. */
  readonly ownAuthority: boolean;
}

/** Lines to paste: what they are called, where they belong, and what to know of them. */
export interface Paste {
  readonly title: string;
  readonly where: string;
  readonly text: string;
}

export const keyFile = "belfry.key";
export const authorityFile = "belfry-ca.pem";

export function placeOf({ origin, hostname, port, protocol }: Location, ownAuthority: boolean): Place {
  const secure = protocol === "https:";
  return {
    origin,
    host: `${hostname}:${port || (secure ? "443" : "80")}`,
    ownAuthority: ownAuthority && secure,
  };
}

/** Puts the key into a file that no other account can read. */
export const keyLine = (key: string) => `(umask 077; printf '%s' '${key}' > ${keyFile})`;

/** Gets the authority's certificate, and keeps it only when it is the one that this page has. @param digest SHA-256 of the file, hex */
export const authorityLine = ({ origin }: Place, digest: string) =>
  `curl -fsSk -o ${authorityFile} ${origin}/ca.crt && echo '${digest}  ${authorityFile}' | sha256sum -c || rm -f ${authorityFile}`;

const bearer = `-H "authorization: Bearer $(cat ${keyFile})" -H 'content-type: application/json'`;

function curl({ origin, ownAuthority }: Place): Paste[] {
  const call = (what: string, body: string) =>
    `curl -sS ${ownAuthority ? `--cacert ${authorityFile} ` : ""}${bearer} ${origin}/v1/data-receiver/${what} -d '${body}'`;
  const shared = `"timestamp":'$(date +%s)000',"dimensions":{"source":"'"$(hostname)"'"}`;
  return [
    {
      title: "An event",
      where: "in a shell",
      text: call(
        "events",
        `{"events":[{"name":"first event",${shared},"severity":"SEVERITY_INFO","status":"STATUS_OPEN","summary":"sent by curl"}]}`,
      ),
    },
    {
      title: "A metric point",
      where: "in a shell",
      text: call("metrics", `{"metrics":[{"metric":"queue.length",${shared},"value":3}]}`),
    },
  ];
}

function prometheus({ origin, host, ownAuthority }: Place): Paste[] {
  const scheme = origin.startsWith("https:") ? "https" : "http";
  const shared = (indent: string) =>
    `${indent}authorization: { credentials_file: ${keyFile} }\n${ownAuthority ? `${indent}tls_config: { ca_file: ${authorityFile} }\n` : ""}`;
  return [
    {
      title: "Alerts and samples",
      where: "in prometheus.yml, with the two files in its folder",
      text: `alerting:
  alertmanagers:
    - scheme: ${scheme}
${shared("      ")}      static_configs: [{ targets: ["${host}"] }]
remote_write:
  - url: ${origin}/api/v1/write
${shared("    ")}`.trimEnd(),
    },
    {
      title: "Check",
      where: "in a shell, before Prometheus reads it again",
      text: "promtool check config prometheus.yml",
    },
  ];
}

function openTelemetry({ origin, host, ownAuthority }: Place): Paste[] {
  const sdk = [
    `export OTEL_EXPORTER_OTLP_ENDPOINT=${origin}`,
    `export OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer $(cat ${keyFile})"`,
    ...(ownAuthority ? [`export OTEL_EXPORTER_OTLP_CERTIFICATE="$PWD/${authorityFile}"`] : []),
    "export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
    "export OTEL_TRACES_EXPORTER=none",
  ];
  const tls = ownAuthority ? `    tls: { ca_file: ${authorityFile} }\n` : "";
  const plain = origin.startsWith("https:") ? "" : "    tls: { insecure: true }\n";
  return [
    { title: "An SDK", where: "in the shell that starts your program", text: sdk.join("\n") },
    {
      title: "The Collector",
      where: "in collector.yaml, with the two files in its folder",
      text: `receivers:
  otlp:
    protocols: { grpc: {}, http: {} }
exporters:
  otlp:
    endpoint: ${host}
    headers: { authorization: "Bearer \${env:BELFRY_KEY}" }
${tls}${plain}service:
  pipelines:
    metrics: { receivers: [otlp], exporters: [otlp] }
    logs: { receivers: [otlp], exporters: [otlp] }`,
    },
    {
      title: "Start the Collector",
      where: "in a shell",
      text: `BELFRY_KEY="$(cat ${keyFile})" otelcol --config collector.yaml`,
    },
  ];
}

function agent({ origin, ownAuthority }: Place): Paste[] {
  const authority = ownAuthority ? ` AGENT_CA=${authorityFile}` : "";
  return [
    {
      title: "The host agent",
      where: "in a checkout of Belfry, after npm ci, with the two files in its folder",
      text: `AGENT_URL=${origin}${authority} AGENT_KEY_FILE=${keyFile} npm run agent`,
    },
  ];
}

/** The programs that lines are shown for, by their names in the address. */
export const programs: Readonly<
  Record<string, { readonly label: string; readonly note: string; pastes(place: Place): Paste[] }>
> = {
  curl: { label: "curl", note: "One event and one point, to see that all is in place.", pastes: curl },
  prometheus: {
    label: "Prometheus",
    note: "Add them where your file has these sections already. Alerts become events, with your own alert rules; samples become metrics.",
    pastes: prometheus,
  },
  opentelemetry: {
    label: "OpenTelemetry",
    note: "Metrics arrive, and log records that have an event's name. Give your program a service name: it becomes the entity.",
    pastes: openTelemetry,
  },
  agent: {
    label: "Host agent",
    note: "It sends the machine, its disks, networks and file systems as entities, their metrics every ten seconds, and events of what is nearly full. Beside npm start in the same checkout, npm run agent alone is enough.",
    pastes: agent,
  },
};
