import { and, eq, inArray } from "drizzle-orm";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import type { Keyring } from "./keyring.ts";
import { sealedOpener } from "./secrets.ts";
import { credentials } from "./tables.ts";

/** The forms of the keys that products give out: by the kind of destination, which is the type of credential, with the key's name in one. */
const forms: readonly { kind: string; key: string; form: RegExp; rule: string }[] = [
  {
    kind: "incidentPaging",
    key: "routingKey",
    form: /^[A-Za-z0-9]{32}$/,
    rule: "PagerDuty takes no such key: an integration key has 32 letters and digits",
  },
  {
    kind: "teamChat",
    key: "token",
    // A token that rotates has the prefix; one of a user posts, too.
    form: /^(xoxe\.)?xox[bp]-/,
    rule: "Slack takes no such token: a bot's begins with xoxb-",
  },
];

/** The kinds of destinations, and types of credentials, whose keys have a form. */
export const kindsOfKeys = forms.map(({ kind }) => kind);

/** Says which form a key does not have; empty: none is known, or it has it. */
export function keyTrouble(kind: string, key: string | undefined): string {
  const known = forms.find((each) => each.kind === kind);
  return key === undefined || known === undefined || known.form.test(key) ? "" : known.rule;
}

/** Says which of these credentials hold a key or token of the wrong form, by their ids. */
export async function credentialTroubles(
  db: Db,
  tenantId: string,
  ids: readonly string[],
  keyring: Keyring,
): Promise<ReadonlyMap<string, string>> {
  if (ids.length === 0) return new Map();
  const { id, type, secrets } = credentials;
  const rows = await orm(db)
    .select({ id, type, secrets })
    .from(credentials)
    .where(and(eq(credentials.tenantId, tenantId), inArray(id, [...ids]), inArray(type, kindsOfKeys)));
  if (rows.length === 0) return new Map();
  const open = await sealedOpener(db, tenantId, keyring);
  const keys = new Map(forms.map(({ kind, key }) => [kind, key]));
  return new Map(
    rows.map((row) => {
      const opened = openable(() => open({ kind: "credential", id: row.id }, row.secrets));
      return [row.id, keyTrouble(row.type, opened[keys.get(row.type) ?? ""])];
    }),
  );
}

/** What is opened; nothing where that fails: it fails again where it is sent, which says why. */
export function openable(open: () => Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  try {
    return open();
  } catch {
    return {};
  }
}
