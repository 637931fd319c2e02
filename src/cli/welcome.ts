import { readFileSync } from "node:fs";
import { relative } from "node:path";
import type { Server } from "../server.ts";
import { program } from "../version.ts";

/** A server that serves. */
type Welcomed = Pick<Server, "url" | "caFile" | "names" | "firstKey" | "tenantless">;

/** A path as a shell takes it, from the working directory. */
export function shellQuoted(path: string): string {
  const near = relative(process.cwd(), path);
  const shown = near.startsWith("..") ? path : near;
  return /^[\w./-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", "'\\''")}'`;
}

const isLoopback = (host: string) => host === "localhost" || host === "::1" || host.startsWith("127.");

/** What can connect, and by which names, where that is not this machine by the address that is printed. */
function reach({ url, caFile, names }: Welcomed, host: string): string[] {
  const address = new URL(url);
  const called = address.hostname.replace(/^\[|\]$/g, "");
  const open = !isLoopback(host);
  const certified = names.length === 0 || names.includes(called);
  if (!open && certified) return [];
  const others = open ? [`It listens at ${host}: other machines can connect.`] : [];
  if (names.length === 0) return [...others, "Without TLS, keys and data travel in the clear."];
  const ca = open && caFile !== undefined ? `; clients there need ${shellQuoted(caFile)}` : "";
  return [...others, `Its certificate is valid for ${names.join(", ")}${ca}.`];
}

/** Returns the address by which programs on this machine reach the server: one that its certificate is valid for. */
export function callableUrl({ url, names }: Pick<Server, "url" | "names">): string {
  const address = new URL(url);
  const called = address.hostname.replace(/^\[|\]$/g, "");
  const other = names.find((name) => /[a-z]/i.test(name) && !/[*:]/.test(name));
  if (names.length === 0 || names.includes(called) || other === undefined) return url;
  address.hostname = other;
  return address.origin;
}

/** Returns the begin of a call of the API for a shell; the file holds its key, without one the shell's `BELFRY_KEY` does. */
export const curlWith = (caFile: string | undefined, keyFile: string | undefined) =>
  `curl ${caFile === undefined ? "" : `--cacert ${shellQuoted(caFile)} `}-H "service-api-key: ${keyFile === undefined ? "$BELFRY_KEY" : `$(cat ${shellQuoted(keyFile)})`}" -H 'content-type: application/json'`;

/** Where people look at it. A link that logs in is shown once; the browser's warning is explained where it will come. */
function consoleLines(url: string, token: string | undefined, caFile: string | undefined): string[] {
  if (token === undefined) return [`Console: ${url}/console/  (${program} console prints a link that logs in)`];
  const warning = `Browsers warn of its certificate, which only this machine has signed; ${url}/certificate says how to trust it.`;
  return [
    `Console: ${url}/console/#first=${token}  (logs in once, within 30 minutes)`,
    ...(caFile === undefined ? [] : [warning]),
  ];
}

/**
 * What is printed when a server serves: where, what can connect, and what a newcomer opens and pastes next: one call in, one
 * out, one refusal that helps. `toTerminal`: the first key is shown, once; `token`: of the link that logs in; `processes`: how many serve,
 * where there are several.
 */
export function welcome(
  server: Welcomed,
  host: string,
  shown: { toTerminal: boolean; token?: string | undefined; processes?: string | undefined },
): string {
  const { toTerminal, token, processes } = shown;
  const { caFile, firstKey } = server;
  const url = callableUrl(server);
  const lines = [`Belfry serves at ${url}`, ...(processes === undefined ? [] : [processes]), ...reach(server, host)];
  if (server.tenantless)
    lines.push(
      `The database has no tenant yet. Make one, with its first manager key: ${program} tenants create <name>`,
    );
  const console = consoleLines(url, token, caFile);
  if (firstKey === undefined) return `${[...lines, ...console].join("\n")}\n`;
  const keyFile = shellQuoted(firstKey.file);
  lines.push(
    // A terminal is read once; what goes elsewhere is kept.
    firstKey.made && toTerminal
      ? `The first manager key, kept in ${keyFile}: ${readFileSync(firstKey.file, "utf8").trim()}`
      : `The first manager key is in ${keyFile}`,
    ...console,
  );
  const curl = curlWith(caFile, firstKey.file);
  const event = (severity: string) =>
    `{"events":[{"name":"disk full","timestamp":"${Date.now()}","dimensions":{"source":"web-1"},"severity":"${severity}","status":"STATUS_OPEN","summary":"97 % of /var is used"}]}`;
  return `${lines.join("\n")}

Send an event, find it, and see what a mistake is answered with:

${curl} ${url}/v1/data-receiver/events -d '${event("SEVERITY_ERROR")}'

${curl} ${url}/v1/events:search -d '{"query":{"severities":["SEVERITY_ERROR"]}}'

${curl} ${url}/v1/data-receiver/events -d '${event("SEVERITY_BAD")}'

`;
}
