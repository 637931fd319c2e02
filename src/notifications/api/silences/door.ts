import { asc, desc, sql } from "drizzle-orm";
import type { Principal } from "../../../auth/principal.ts";
import type { Db } from "../../../db/connect.ts";
import { orm } from "../../../db/orm.ts";
import { auditedCall } from "../../../tenants/audit.ts";
import {
  readSilence,
  readSilences,
  type SilenceFilter,
  type SilenceState,
  type StoredSilence,
  silencesWhere,
  type WantedSilence,
} from "../../silences/silences.ts";
import { silences } from "../../silences/tables.ts";
import type { SilenceWriter } from "../../silences/write.ts";

/** Who calls, for the audit log and as the author. */
export interface Caller {
  readonly principal: Principal;
  readonly requestId: string;
}

type Wanted = Omit<WantedSilence, "ruleNames" | "destinationNames">;

/** Silences as another tool's protocol reads and writes them. It knows no scope: one that was set here stays. */
export interface SilenceDoor {
  create(tenantId: string, wanted: Wanted, caller: Caller): Promise<StoredSilence>;
  /** One that has ended begins anew. @throws code 5 */
  replace(tenantId: string, id: string, wanted: Wanted, caller: Caller): Promise<StoredSilence>;
  expire(tenantId: string, id: string, caller: Caller): Promise<StoredSilence>;
  read(tenantId: string, id: string): Promise<StoredSilence>;
  /** Reads them state by state, in pages: active ones by their end, pending ones by their start, expired ones by their end, the last first. */
  list(tenantId: string, filter: SilenceFilter, nowMs: number): AsyncIterable<StoredSilence[]>;
}

const noScope = { ruleNames: [], destinationNames: [] };
const pageRows = 200;

/** Makes the door of other tools, by the writer that the native API has too. */
export function silenceDoor(db: Db, writer: SilenceWriter): SilenceDoor {
  const by = ({ principal: { clientId, clientName, keyPrefix } }: Caller) => ({
    author: { clientId, clientName, keyPrefix },
    at: "",
  });
  const audit = (caller: Caller, what: string) => (tx: Db, id: string) =>
    auditedCall(tx, caller, `alertmanager/${what}`, `silence/${id}`);
  return {
    create: (tenantId, wanted, caller) =>
      writer.create(tenantId, { ...wanted, ...noScope }, by(caller), audit(caller, "PostSilences")),
    replace: (tenantId, id, wanted, caller) =>
      writer.replace(
        tenantId,
        id,
        { ...wanted, ...noScope },
        { ...by(caller), again: true, keepsScope: true },
        audit(caller, "PostSilences"),
      ),
    expire: (tenantId, id, caller) => writer.expire(tenantId, id, audit(caller, "DeleteSilence")),
    read: (tenantId, id) => readSilence(db, tenantId, id),
    async *list(tenantId, { states, canonical }, nowMs) {
      for (const state of states) yield* pagesOf(db, tenantId, state, canonical, nowMs);
    },
  };
}

/** Those of one state. Their ids are read first: a page more is no other moment. */
async function* pagesOf(
  db: Db,
  tenantId: string,
  state: SilenceState,
  canonical: readonly string[],
  nowMs: number,
): AsyncGenerator<StoredSilence[]> {
  const { endsMs, startsMs, id } = silences;
  const order = state === "PENDING" ? asc(startsMs) : state === "ACTIVE" ? sql`${endsMs} asc nulls last` : desc(endsMs);
  const ids = await orm(db)
    .select({ id })
    .from(silences)
    .where(silencesWhere(tenantId, { states: [state], canonical }, nowMs))
    .orderBy(order, id);
  for (let from = 0; from < ids.length; from += pageRows) {
    const page = ids.slice(from, from + pageRows).map((each) => each.id);
    yield await readSilences(db, tenantId, page);
  }
}
