import { textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import type { Keyring } from "./keyring.ts";
import { sealedOpener } from "./secrets.ts";

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
  // Each by its key, in its order: else the index on names is taken where statistics are missing or of other tenants.
  const all = await db<{ id: string; type: string; secrets: Record<string, string> }[]>`
    select own.* from unnest(${textArray([...new Set(ids)])}::text[]) as asked (id) cross join lateral (
      select id, type, secrets from credentials
      where tenant_id = ${tenantId} and id >= asked.id and id <= asked.id order by id limit 1) as own`;
  const rows = all.filter(({ type }) => kindsOfKeys.includes(type));
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

/** Opens secrets; returns none where that fails: sending fails in the same way, and says why. */
export function openable(open: () => Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  try {
    return open();
  } catch {
    return {};
  }
}
