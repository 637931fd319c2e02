import { and, eq, inArray } from "drizzle-orm";
import type { Keyring } from "../credentials/keyring.ts";
import { sealedOpener } from "../credentials/secrets.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { ownerOf } from "./secrets.ts";
import { destinations } from "./tables.ts";

/** The forms of the keys that products give out, by their paths within a destination's type. */
const forms: readonly { path: string; form: RegExp; rule: string }[] = [
  {
    path: "incidentPaging.integrationKey",
    form: /^[A-Za-z0-9]{32}$/,
    rule: "PagerDuty takes no such key: an integration key has 32 letters and digits",
  },
  {
    path: "teamChat.token",
    // A token that rotates has the prefix; one of a user posts, too.
    form: /^(xoxe\.)?xox[bp]-/,
    rule: "Slack takes no such token: a bot's begins with xoxb-",
  },
];

const kinds = forms.map(({ path }) => path.slice(0, path.indexOf(".")));

/** Says which of these destinations have a key or token of the wrong form, by their names; those of credentials are not looked at. */
export async function keyTroubles(
  db: Db,
  tenantId: string,
  names: readonly string[],
  keyring: Keyring,
): Promise<ReadonlyMap<string, string>> {
  const { name, secrets } = destinations;
  const rows = await orm(db)
    .select({ name, secrets })
    .from(destinations)
    .where(and(eq(destinations.tenantId, tenantId), inArray(name, [...names]), inArray(destinations.kind, kinds)));
  if (rows.length === 0) return new Map();
  const open = await sealedOpener(db, tenantId, keyring);
  return new Map(rows.map((row) => [row.name, formTrouble(() => open(ownerOf(row.name), row.secrets))]));
}

function formTrouble(open: () => Readonly<Record<string, string>>): string {
  try {
    const secrets = open();
    const wrong = forms.find(({ path, form }) => secrets[path] !== undefined && !form.test(secrets[path]));
    return wrong === undefined ? "" : `${wrong.path}: ${wrong.rule}`;
  } catch {
    // What cannot be opened fails where it is sent, which says why.
    return "";
  }
}
