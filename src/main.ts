import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { createClient, createKey, createTenant } from "./auth/issue.ts";
import { type Config, readConfig, SettingError, settingsHelp } from "./config.ts";
import { connect } from "./db/connect.ts";
import { migrate } from "./db/migrate.ts";
import { StartError } from "./db/start-error.ts";
import { transaction } from "./db/transaction.ts";
import { useEmbedded } from "./db/use-embedded.ts";
import { openLog } from "./rpc/log.ts";
import { type Server, startServer } from "./server.ts";

const usage = `Belfry, the management API of an observability platform

  npm start                                  serve
  npm run belfry -- migrate                  bring the database's schema up to date, and do nothing else
  npm run belfry -- tenants create <name>    make a tenant; prints its first manager key, once
  npm run belfry -- tenants list             print the tenants
  npm start -- --help                        print this

Settings (environment variables):
  ${"NAME".padEnd(29)}${"DEFAULT".padEnd(12)} MEANING
${settingsHelp()}
`;

function quoted(path: string): string {
  const near = relative(process.cwd(), path);
  const shown = near.startsWith("..") ? path : near;
  return /^[\w./-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", "'\\''")}'`;
}

/** What a newcomer pastes next: one call in, one out, one refusal that helps. */
function welcome({ url, caFile, firstKey }: Server): string {
  const lines = [`Belfry serves at ${url}`];
  if (firstKey === undefined) return `${lines.join("\n")}\n`;
  const keyFile = quoted(firstKey.file);
  lines.push(
    firstKey.made
      ? `The first manager key, kept in ${keyFile}: ${readFileSync(firstKey.file, "utf8").trim()}`
      : `The first manager key is in ${keyFile}`,
  );
  const curl = `curl ${caFile === undefined ? "" : `--cacert ${quoted(caFile)} `}-H "service-api-key: $(cat ${keyFile})" -H 'content-type: application/json'`;
  const event = (severity: string) =>
    `{"events":[{"name":"disk full","timestamp":"${Date.now()}","dimensions":{"source":"web-1"},"severity":"${severity}","status":"STATUS_OPEN","summary":"97 % of /var is used"}]}`;
  return `${lines.join("\n")}

Send an event, find it, and see what a mistake is answered with:

${curl} ${url}/v1/data-receiver/events -d '${event("SEVERITY_ERROR")}'

${curl} ${url}/v1/events:search -d '{"query":{"severities":["SEVERITY_ERROR"]}}'

${curl} ${url}/v1/data-receiver/events -d '${event("SEVERITY_BAD")}'

`;
}

async function serve(config: Config): Promise<void> {
  const log = openLog(config.logLevel);
  let signals = 0;
  const stopAsked = Promise.withResolvers<void>();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      signals += 1;
      if (signals > 1) process.exit(130);
      process.stderr.write("stopping; once more to stop at once\n");
      stopAsked.resolve();
    });
  }
  const server = await startServer(config, log);
  if (signals === 0) process.stdout.write(welcome(server));
  await stopAsked.promise;
  await server.stop();
  log.flush();
}

async function onDatabase<T>(config: Config, work: (url: string) => Promise<T>): Promise<T> {
  if (config.databaseUrl !== undefined) return await work(config.databaseUrl);
  return await useEmbedded({ dataDir: config.dataDir, log: openLog("silent") }, work);
}

async function createTenantAndKey(config: Config, url: string, name: string): Promise<string> {
  await migrate(url);
  const pool = connect(url, config);
  try {
    return await transaction(pool.sql, async (tx) => {
      const tenant = await createTenant(tx, name);
      const client = await createClient(tx, tenant.id, { name: "admin", type: "USER", role: "manager" });
      const key = await createKey(tx, tenant.id, client.id, { description: "first key", expiresMs: null });
      return `tenant ${JSON.stringify(tenant.name)} is made; its first manager key, shown once:\n${key.text}\n`;
    });
  } finally {
    await pool.close();
  }
}

async function listTenants(config: Config, url: string): Promise<string> {
  const pool = connect(url, config);
  try {
    const rows = await pool.sql<{ id: string; name: string }[]>`select id, name from tenants order by name`;
    return rows.map(({ id, name }) => `${id}  ${name}\n`).join("");
  } finally {
    await pool.close();
  }
}

/** Runs one command line; answers the exit code. */
async function main(args: readonly string[]): Promise<number> {
  const [command, ...rest] = args;
  if (args.some((arg) => ["--help", "-h", "help"].includes(arg))) {
    process.stdout.write(usage);
    return 0;
  }
  const config = readConfig(process.env);
  if (command === "serve" && rest.length === 0) {
    await serve(config);
  } else if (command === "migrate" && rest.length === 0) {
    const applied = await onDatabase(config, migrate);
    process.stdout.write(applied.length === 0 ? "the schema is up to date\n" : `applied ${applied.join(", ")}\n`);
  } else if (command === "tenants" && rest[0] === "create" && rest[1] !== undefined && rest.length === 2) {
    const name = rest[1];
    if (name === "" || name.length > 255 || /\p{Cc}/u.test(name)) {
      throw new StartError("a tenant's name has 1 to 255 characters, no control characters");
    }
    process.stdout.write(await onDatabase(config, (url) => createTenantAndKey(config, url, name)));
  } else if (command === "tenants" && rest[0] === "list" && rest.length === 1) {
    process.stdout.write(await onDatabase(config, (url) => listTenants(config, url)));
  } else {
    process.stderr.write(usage);
    return 2;
  }
  return 0;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  // One clear line for what the operator can mend; anything else is a fault of ours and shows where.
  const mendable =
    error instanceof SettingError || error instanceof StartError || (error as Error).name === "ConnectError";
  process.stderr.write(`belfry: ${mendable ? (error as Error).message : (error as Error).stack}\n`);
  process.exitCode = 1;
}
