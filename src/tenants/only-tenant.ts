import type { Db } from "../db/connect.ts";
import { StartError } from "../db/start-error.ts";

const namedMax = 20;

/** Returns the only tenant. @throws StartError for `command`, which names the tenants when there are several */
export async function onlyTenant(db: Db, command: string): Promise<{ id: string; name: string }> {
  const found = await db<{ id: string; name: string }[]>`
    select id, name from tenants order by name limit ${namedMax + 1}`;
  const [only, other] = found;
  if (only === undefined)
    throw new StartError(`${command} needs a tenant: make one with \`tenants create <name>\` first`);
  if (other === undefined) return only;
  const names = found.slice(0, namedMax).map(({ name }) => name);
  const more = found.length > namedMax ? " …" : "";
  throw new StartError(`${command} needs --tenant <name>, since there are several tenants: ${names.join(", ")}${more}`);
}
