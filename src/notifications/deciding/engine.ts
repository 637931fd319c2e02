import type { Sql } from "../../db/connect.ts";
import type { ChangeHooks } from "../../events/changes.ts";
import type { OnDeleted } from "../../events/retention.ts";
import type { JobKind } from "../../jobs/worker.ts";
import type { Log } from "../../log.ts";
import type { OnPoints } from "../../metrics/store.ts";
import { resolvedJob } from "../silences/until-resolved.ts";
import { lookAtStanding, startSources } from "../sources.ts";
import { forgetOccurrences } from "./match-store.ts";
import { rulesMemory } from "./matcher/rules-memory.ts";
import type { TenantRules } from "./matcher/tenant-rules.ts";
import { onChanges, onKeptOpen } from "./on-changes.ts";
import { onPoints } from "./on-points.ts";
import type { Wake } from "./passage.ts";
import { type Recheck, recheckMatches } from "./recheck.ts";
import { repeatJob } from "./repeat-jobs.ts";
import { standingJob } from "./standing-look.ts";
import { backlog } from "./unmatched/backlog.ts";
import { type LateStats, lateMatching } from "./unmatched/late-matching.ts";
import { windowRules } from "./windows.ts";

/** The part of notifications that decides: what is to be sent is stored in the transaction that stores its cause. */
export interface RuleEngine {
  readonly onChanges: NonNullable<ChangeHooks["onChanges"]>;
  readonly onKeptOpen: NonNullable<ChangeHooks["onKeptOpen"]>;
  readonly onPoints: OnPoints;
  /** What happens when occurrences are deleted. */
  readonly onDeleted: OnDeleted;
  /** What happens when maintenance windows begin and end. */
  readonly windows: Omit<ReturnType<typeof windowRules>, "kind">;
  readonly kinds: readonly JobKind[];
  /** Returns the rules and silences of a tenant as they are now. */
  inForce(tenantId: string): Promise<Pick<TenantRules, "silences" | "byId">>;
  /** Before events of a tenant are taken. @throws code 8 while too many wait to be matched */
  check(tenantId: string): void;
  /** What was matched after the commit. */
  stats(): LateStats;
  /** Writes what is to be known of data that came, for all servers; happens by itself every two seconds. */
  flush(nowMs: number): Promise<void>;
  /** After the last data were stored. */
  stop(): Promise<void>;
  /** Called right before deliveries are tried: which of them are still needed, by their ids. */
  readonly recheck: Recheck;
}

interface EngineOptions {
  /** Called after the commit when jobs are due. */
  wakeJobs?: () => void;
  /** How long matching may keep a transaction that stores changes, ms; 0: all of them are matched after it. */
  storingMs?: number;
  log?: Pick<Log, "error">;
}

/** @param wake told after the commit that deliveries of a tenant are due, now or later */
export function ruleEngine(
  sql: Sql,
  wake: Wake,
  nowMs: () => number,
  { wakeJobs = () => {}, storingMs = 20, log }: EngineOptions = {},
): RuleEngine {
  const shared = { memory: rulesMemory(), wake };
  const sources = startSources({ ...shared, sql, nowMs });
  const waiting = backlog(sql);
  function wakeMatching(tenantId: string) {
    waiting.grew(tenantId);
    wakeJobs();
  }
  const deciding = { ...shared, lookAtStanding, onEvents: sources.onEvents, wakeMatching, storingMs };
  const { kind, ...windows } = windowRules(deciding, nowMs);
  const late = lateMatching(deciding, log);
  return {
    onChanges: onChanges(deciding),
    onKeptOpen: onKeptOpen(deciding),
    onPoints: onPoints(shared, sources),
    onDeleted: forgetOccurrences,
    windows,
    kinds: [kind, ...sources.kinds, late.kind, repeatJob(deciding), standingJob(deciding), resolvedJob()],
    inForce: (tenantId) => shared.memory.now(sql, tenantId),
    check: waiting.check,
    stats: late.stats,
    flush: sources.flush,
    stop: sources.stop,
    recheck: (tenantId, deliveries, nowMs) => recheckMatches(sql, tenantId, deliveries, deciding, nowMs),
  };
}
