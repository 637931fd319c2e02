import { userInfo } from "node:os";
import { parseArgs } from "node:util";
import { issueKey, listKeys, revokeKey } from "../auth/api-keys.ts";
import { deleteClient, listClients, roleOf } from "../auth/clients.ts";
import { createClient } from "../auth/create-tenant.ts";
import type { ClientType } from "../auth/principal.ts";
import type { Db } from "../db/connect.ts";
import { StartError } from "../db/start-error.ts";
import { transaction } from "../db/transaction.ts";
import { resourceText } from "../rpc/audit.ts";
import { type Actor, auditedAction } from "../tenants/audit.ts";
import { createTenantWithKey } from "../tenants/tenant.ts";

/** How the commands of this file are called. */
export const tenantUsage = [
  ["tenants create <name>", "make a tenant; prints its first manager key, once"],
  ["tenants list", "print the tenants"],
  ["clients create <tenant> <name> <type> [<role>]", "make an API client: DATA_INGEST, USER_MANAGEMENT, or USER"],
  ["", "with the role read_only_user, user or manager"],
  ["clients list <tenant>", "print its API clients"],
  ["clients delete <tenant> <client id>", "delete one and revoke its keys"],
  ["keys create <tenant> <client id> [--description <text>] [--expires <ISO time>]", "make a key, shown once"],
  ["keys list <tenant> <client id>", "print the keys of a client, without their secrets"],
  ["keys revoke <tenant> <client id> <key id>", "revoke a key, everywhere within a second"],
] as const;

type Work = (db: Db) => Promise<string>;

interface Options {
  description?: string | undefined;
  expires?: string | undefined;
}

interface Command {
  parameters: [least: number, most: number];
  options: boolean;
  run(db: Db, given: string[], options: Options): Promise<string>;
}

const commands: Record<string, Command> = {
  "tenants create": { parameters: [1, 1], options: false, run: (db, [name = ""]) => makeTenant(db, name) },
  "tenants list": { parameters: [0, 0], options: false, run: (db) => printTenants(db) },
  "clients create": {
    parameters: [3, 4],
    options: false,
    run: (db, [tenant = "", name = "", type = "", role = ""]) => makeClient(db, tenant, { name, type, role }),
  },
  "clients list": { parameters: [1, 1], options: false, run: (db, [tenant = ""]) => printClients(db, tenant) },
  "clients delete": {
    parameters: [2, 2],
    options: false,
    run: (db, [tenant = "", id = ""]) => removeClient(db, tenant, id),
  },
  "keys create": {
    parameters: [2, 2],
    options: true,
    run: (db, [tenant = "", client = ""], options) => makeKey(db, tenant, client, options),
  },
  "keys list": {
    parameters: [2, 2],
    options: false,
    run: (db, [tenant = "", client = ""]) => printKeys(db, tenant, client),
  },
  "keys revoke": {
    parameters: [3, 3],
    options: false,
    run: (db, [tenant = "", client = "", key = ""]) => removeKey(db, tenant, client, key),
  },
};

/** What a command line about tenants, clients or keys asks for: the work on a migrated database, which answers what to print. Undefined when it is none. */
export function tenantCommand(args: readonly string[]): Work | undefined {
  const words = args.slice(0, 2).join(" ");
  const command = Object.hasOwn(commands, words) ? commands[words] : undefined;
  if (command === undefined) return undefined;
  try {
    const { positionals, values } = parseArgs({
      args: args.slice(2),
      allowPositionals: true,
      options: command.options ? { description: { type: "string" }, expires: { type: "string" } } : {},
    });
    const [least, most] = command.parameters;
    if (positionals.length < least || positionals.length > most) return undefined;
    return (db) => command.run(db, positionals, values);
  } catch {
    return undefined; // an option that it does not have
  }
}

/** The author of actions on the command line; they are in the audit log of the tenant, with the account of the machine. */
export function commandLine(): Actor {
  return { id: "command-line", name: `command line (${accountName()})` };
}

function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`; // in containers an account may have no name
  }
}

function checkName(name: string, of: string) {
  if (name === "" || [...name].length > 255 || /\p{Cc}/u.test(name)) {
    throw new StartError(`a ${of}'s name has 1 to 255 characters, no control characters`);
  }
}

/** How many tenants are named where none is found. */
const shownTenants = 20;

/** A tenant by its name or its id. @throws StartError that names those there are */
export async function tenantNamed(db: Db, text: string): Promise<{ id: string; name: string }> {
  const [row] = await db<{ id: string; name: string }[]>`
    select id, name from tenants where name = ${text} or id::text = ${text} order by name = ${text} desc limit 1`;
  if (row !== undefined) return row;
  const others = await db<{ name: string }[]>`select name from tenants order by name limit ${shownTenants}`;
  const names = others.map(({ name }) => JSON.stringify(name)).join(", ");
  throw new StartError(`no tenant found for ${JSON.stringify(text)}; tenants: ${names || "none"}`);
}

async function makeTenant(db: Db, name: string): Promise<string> {
  checkName(name, "tenant");
  const { secret } = await transaction(db, (tx) => createTenantWithKey(tx, name, commandLine()));
  return `tenant ${JSON.stringify(name)} is made; its first manager key, shown once:\n${secret}\n`;
}

async function printTenants(db: Db): Promise<string> {
  const rows = await db<{ id: string; name: string }[]>`select id, name from tenants order by name`;
  return rows.map(({ id, name }) => `${id}  ${name}\n`).join("");
}

const clientTypes = ["DATA_INGEST", "USER_MANAGEMENT", "USER"];
const roles = ["", "read_only_user", "user", "manager"];

async function makeClient(
  db: Db,
  tenantName: string,
  { name, type, role }: { name: string; type: string; role: string },
): Promise<string> {
  checkName(name, "client");
  if (!clientTypes.includes(type)) throw new StartError(`the type must be one of ${clientTypes.join(", ")}`);
  if (!roles.includes(role)) throw new StartError(`the role must be one of ${roles.slice(1).join(", ")}`);
  const client = { name, type: type as ClientType, role: roleOf(type as ClientType, role, "role") };
  const tenant = await tenantNamed(db, tenantName);
  const { id } = await transaction(db, async (tx) => {
    const made = await createClient(tx, tenant.id, client);
    await auditedAction(tx, tenant.id, commandLine(), "CreateApiClient", resourceText("apiClient", made.id));
    return made;
  });
  return `${id}\n`;
}

async function printClients(db: Db, tenantName: string): Promise<string> {
  const tenant = await tenantNamed(db, tenantName);
  const lines: string[] = [];
  for (let pageToken = "", more = true; more; more = pageToken !== "") {
    const page = await listClients(db, tenant.id, { pageSize: 1000, pageToken });
    for (const { id, name, type, role } of page.clients) {
      lines.push(`${id}  ${type.padEnd(15)}  ${(role ?? "").padEnd(14)}  ${name}\n`);
    }
    pageToken = page.nextPageToken;
  }
  return lines.join("");
}

async function removeClient(db: Db, tenantName: string, id: string): Promise<string> {
  const tenant = await tenantNamed(db, tenantName);
  await transaction(db, async (tx) => {
    await deleteClient(tx, tenant.id, id);
    await auditedAction(tx, tenant.id, commandLine(), "DeleteApiClient", resourceText("apiClient", id));
  });
  return `API client ${id} is deleted, and its keys are revoked\n`;
}

async function makeKey(db: Db, tenantName: string, clientId: string, options: Options): Promise<string> {
  const { description = "", expires } = options;
  if (Buffer.byteLength(description) > 4096) throw new StartError("a description has 4096 bytes at most");
  const expiresMs = expires === undefined ? null : expiryMs(expires);
  const tenant = await tenantNamed(db, tenantName);
  const { key, secret } = await transaction(db, async (tx) => {
    const made = await issueKey(tx, tenant.id, clientId, { description, expiresMs }, "--expires");
    await auditedAction(tx, tenant.id, commandLine(), "CreateApiKey", resourceText("apiKey", made.key.id));
    return made;
  });
  return `key ${key.id}, shown once:\n${secret}\n`;
}

function expiryMs(text: string): bigint {
  const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;
  const ms = iso.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) throw new StartError("--expires must be an ISO time such as 2030-01-31T00:00:00Z");
  return BigInt(ms);
}

const time = (ms: bigint | null) => (ms === null ? "never" : new Date(Number(ms)).toISOString());

async function printKeys(db: Db, tenantName: string, clientId: string): Promise<string> {
  const tenant = await tenantNamed(db, tenantName);
  const { keys } = await listKeys(db, tenant.id, { clientId, pageSize: 0, pageToken: "" });
  return keys
    .map(
      (key) =>
        `${key.id}  bf_${key.prefix}  created ${time(key.createdMs)}  expires ${time(key.expiresMs)}  ` +
        `last used ${time(key.lastUsedMs)}  ${key.description}\n`,
    )
    .join("");
}

async function removeKey(db: Db, tenantName: string, clientId: string, keyId: string): Promise<string> {
  const tenant = await tenantNamed(db, tenantName);
  await transaction(db, async (tx) => {
    await revokeKey(tx, tenant.id, clientId, keyId);
    await auditedAction(tx, tenant.id, commandLine(), "DeleteApiKey", resourceText("apiKey", keyId));
  });
  return `key ${keyId} is revoked\n`;
}
