import { type Histogram, histogram, secondsBounds } from "../../histogram.ts";
import type { AttemptOutcome } from "../kinds/attempt-outcome.ts";
import type { FailureReason, KindName } from "../kinds/retry.ts";
import type { Result } from "../queue/result.ts";
import type { Ready } from "./prepare.ts";

/** What this process has sent since the start. */
export interface SendingStats {
  /** Deliveries that have ended, by their status; PENDING: tries after which another one follows. */
  readonly results: ReadonlyMap<Result["status"], number>;
  /** Tries by the kind of destination, then by what came of them: `sent`, or why it was not. */
  readonly tries: ReadonlyMap<KindName | "unknown", TryCounts>;
  /** How late deliveries were claimed, after they were due, s. */
  readonly lateSec: Histogram;
}

/** Tries of one kind of destination. */
export interface TryCounts {
  readonly tookSec: Histogram;
  readonly outcomes: Map<FailureReason | "sent", number>;
}

const lateBounds = [...secondsBounds, 60, 300, 1800];

/** Counts what is sent. */
export function sendingStats() {
  const results = new Map<Result["status"], number>();
  const tries = new Map<KindName | "unknown", TryCounts>();
  const lateSec = histogram(lateBounds);
  return {
    read: (): SendingStats => ({ results, tries, lateSec }),
    claimed: (dueMs: number, nowMs: number) => lateSec.note(Math.max(0, nowMs - dueMs) / 1000),
    recorded(ended: readonly Result[]) {
      for (const { status } of ended) results.set(status, (results.get(status) ?? 0) + 1);
    },
    tried({ destination }: Ready, outcome: AttemptOutcome, tookMs: number) {
      const kind = destination instanceof Error ? "unknown" : (destination.type.type.case ?? "unknown");
      const own = tries.get(kind) ?? { tookSec: histogram(), outcomes: new Map() };
      tries.set(kind, own);
      own.tookSec.note(tookMs / 1000);
      const came = outcome.result === "sent" ? "sent" : outcome.reason;
      own.outcomes.set(came, (own.outcomes.get(came) ?? 0) + 1);
    },
  };
}
