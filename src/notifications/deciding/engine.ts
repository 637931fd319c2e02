import type { Sql } from "../../db/connect.ts";
import type { ChangeHooks } from "../../events/changes.ts";
import type { Consumer } from "../../events/consumers/consumer.ts";
import type { OnDeleted } from "../../events/retention.ts";
import type { JobKind } from "../../jobs/worker.ts";
import type { OnPoints } from "../../metrics/store.ts";
import { groupJob } from "../groups/run-groups.ts";
import { forgetOccurrences } from "../rules/match-store.ts";
import { rulesMemory } from "../rules/rules-memory.ts";
import type { TenantRules } from "../rules/tenant-rules.ts";
import { resolvedJob } from "../silences/until-resolved.ts";
import type { Wake } from "./batch.ts";
import { onPoints } from "./on-points.ts";
import { type Recheck, recheckMatches } from "./recheck.ts";
import { changedRulesJob, ungroup } from "./reevaluate-changed-rules.ts";
import { rulesConsumer, unseenSinceMs } from "./rules-consumer.ts";
import { repeatJob } from "./run-repetitions.ts";
import { readCurrentStates, startSources } from "./sources.ts";
import { passFrom } from "./stages.ts";
import { windowRules } from "./windows.ts";

/** Returns the rules and silences of a tenant as they are now. */
export type InForce = (tenantId: string) => Promise<Pick<TenantRules, "silences" | "byId">>;

/** The part of notifications that decides: what is to be sent is stored with its cause, or as the cause is read from the feed. */
export interface RuleEngine {
  /** Reads what happens to occurrences from the feed. */
  readonly consumer: Consumer;
  readonly onKeptOpen: NonNullable<ChangeHooks["onKeptOpen"]>;
  readonly onPoints: OnPoints;
  /** What happens when occurrences are deleted. */
  readonly onDeleted: OnDeleted;
  /** What happens when maintenance windows begin and end. */
  readonly windows: Omit<ReturnType<typeof windowRules>, "kind">;
  readonly kinds: readonly JobKind[];
  readonly inForce: InForce;
  /** Returns the rules of a tenant as this process holds them, at least as new as its last recheck; undefined: it holds none. */
  held(tenantId: string): TenantRules | undefined;
  /** Flushes last-seen times to the database for other servers. Also runs every 2 s. */
  flush(nowMs: number): Promise<void>;
  /** After the last data were stored. */
  stop(): Promise<void>;
  /** Called right before deliveries are tried: which of them are still needed, by their ids. */
  readonly recheck: Recheck;
}

/** @param wake told after the commit that deliveries of a tenant are due, now or later */
export function ruleEngine(sql: Sql, wake: Wake, nowMs: () => number): RuleEngine {
  const memory = rulesMemory();
  const sources = startSources({ memory, wake, sql, nowMs });
  const deciding = { memory, wake, readCurrentStates, onEvents: sources.onEvents };
  const { kind, ...windows } = windowRules(deciding, nowMs);
  return {
    consumer: rulesConsumer(deciding),
    /** Keep-alive reports also reset staleData triggers. */
    onKeptOpen(tenantId, events, { rulesVersion, nowMs: atMs }) {
      if (rulesVersion === 0n) return;
      const note = async () => sources.onEvents(tenantId, await memory.at(sql, tenantId, rulesVersion), events, atMs);
      note().catch(() => undefined); // the next report says the same
    },
    onPoints: onPoints({ memory }, sources),
    onDeleted: forgetOccurrences,
    windows,
    kinds: [
      kind,
      ...sources.kinds,
      repeatJob(deciding),
      changedRulesJob(deciding),
      groupJob({
        memory,
        unseenSinceMs,
        ungroup,
        async send(tx, tenantId, messages, now) {
          await passFrom("enqueue", { tx, tenantId, nowMs: now, wake, ...messages });
        },
      }),
      resolvedJob(),
    ],
    held: memory.held,
    inForce: (tenantId) => memory.now(sql, tenantId),
    flush: sources.flush,
    stop: sources.stop,
    recheck: (tenantId, deliveries, nowMs) => recheckMatches(sql, tenantId, deliveries, deciding, nowMs),
  };
}
