import { type LimiterShare, limiter } from "../../limiter.ts";

/** How many tries this process makes at once, and for whom. */
export interface SendSlots {
  /** Takes up to `wanted` places for a destination of a tenant; returns how many there were. */
  take(tenantId: string, destination: string, wanted: number): number;
  /** Gives places back. */
  free(tenantId: string, destination: string, count: number): void;
  readonly used: number;
}

/**
 * One bound for all, with shares beneath it that shrink as places are used up: a destination alone gets a third of all, a
 * tenant alone two thirds, and the next tenant finds some free, however slow those before are.
 */
export function sendSlots(max: number): SendSlots {
  const places = limiter({ max, what: "deliveries are sent", shares: { tenant: 2, key: 0.5 } });
  const held = new Map<string, LimiterShare[]>();

  return {
    take(tenantId, destination, wanted) {
      const who = { tenant: tenantId, key: `${tenantId} ${destination}` };
      const own = held.get(who.key) ?? [];
      const before = own.length;
      while (own.length - before < wanted && places.fits(who)) own.push(places.take(who));
      if (own.length > 0) held.set(who.key, own);
      return own.length - before;
    },
    free(tenantId, destination, count) {
      const key = `${tenantId} ${destination}`;
      const own = held.get(key) ?? [];
      for (const hold of own.splice(0, count)) hold.release();
      if (own.length === 0) held.delete(key);
    },
    get used() {
      return places.used;
    },
  };
}
