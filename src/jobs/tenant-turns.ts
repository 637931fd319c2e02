import { LRUCache } from "lru-cache";
import type { Lane } from "./queue.ts";

/** Which lane has its turn, within one process. */
export interface TenantTurns {
  /** Those served least recently first: tenant before tenant, then kind before kind. */
  inOrder<T extends Lane>(lanes: readonly T[]): T[];
  /** Whether the lane is being served, or another one of a kind that has only a share. */
  busy(lane: Lane): boolean;
  /** How long the lane, or its kind, still rests, ms; 0 or less: it does not. */
  restMs(lane: Lane): number;
  /**
   * Serves a lane from now on, alone of its kind when that is `shared`, until the answer is called; then the lane rests so
   * long, and its kind as the share demands.
   */
  begin(lane: Lane, shared: boolean): (rest: { share: number; laneMs?: number }) => void;
}

const keyOf = ({ tenantId, kind }: Lane) => `${tenantId} ${kind}`;
const servedMax = 10_000;

/** Keeps turns in memory: they are a matter of fairness, not of safety. */
export function tenantTurns(): TenantTurns {
  const serving = new Set<string>();
  const shared = new Set<string>();
  const restsUntilMs = new Map<string, number>();
  const served = new LRUCache<string, number>({ max: servedMax });
  let count = 0;

  const servedAt = (key: string) => served.get(key) ?? 0;

  function note(key: string) {
    served.set(key, ++count);
  }

  return {
    inOrder: (lanes) =>
      [...lanes].sort((a, b) => servedAt(a.tenantId) - servedAt(b.tenantId) || servedAt(keyOf(a)) - servedAt(keyOf(b))),
    busy: (lane) => serving.has(keyOf(lane)) || shared.has(lane.kind),
    restMs(lane) {
      const nowMs = performance.now();
      const ends = [lane.kind, keyOf(lane)].map((key) => restsUntilMs.get(key) ?? 0);
      for (const key of [lane.kind, keyOf(lane)]) if ((restsUntilMs.get(key) ?? 0) <= nowMs) restsUntilMs.delete(key);
      return Math.max(...ends) - nowMs;
    },
    begin(lane, isShared) {
      const key = keyOf(lane);
      const startMs = performance.now();
      note(lane.tenantId);
      note(key);
      serving.add(key);
      if (isShared) shared.add(lane.kind);
      return ({ share, laneMs = 0 }) => {
        const nowMs = performance.now();
        serving.delete(key);
        if (isShared) shared.delete(lane.kind);
        if (laneMs > 0) restsUntilMs.set(key, nowMs + laneMs);
        if (share < 1) restsUntilMs.set(lane.kind, nowMs + (nowMs - startMs) * (1 / share - 1));
      };
    },
  };
}
