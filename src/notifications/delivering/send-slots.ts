/** How many tries this process makes at once, and for whom. */
export interface SendSlots {
  /** Takes up to `wanted` places for a destination of a tenant; answers how many there were. */
  take(tenantId: string, destination: string, wanted: number): number;
  /** Gives places back. */
  free(tenantId: string, destination: string, count: number): void;
  readonly used: number;
}

/** How many times as much as is still free a tenant may use, and one of its destinations. */
const tenantShare = 2;
const destinationShare = 0.5;

/**
 * One bound for all, with shares beneath it that shrink as places are used up: a destination alone gets a third of all, a
 * tenant alone two thirds, and the next tenant finds some free, however slow those before are.
 */
export function sendSlots(max: number): SendSlots {
  const byTenant = new Map<string, number>();
  const byDestination = new Map<string, number>();
  let used = 0;

  function count(map: Map<string, number>, key: string, change: number) {
    const now = (map.get(key) ?? 0) + change;
    if (now > 0) map.set(key, now);
    else map.delete(key);
  }

  return {
    take(tenantId, destination, wanted) {
      const key = `${tenantId} ${destination}`;
      let got = 0;
      while (got < wanted && used < max) {
        const free = max - used;
        if ((byTenant.get(tenantId) ?? 0) > tenantShare * (free - 1)) break;
        if ((byDestination.get(key) ?? 0) > destinationShare * (free - 1)) break;
        count(byTenant, tenantId, 1);
        count(byDestination, key, 1);
        used++;
        got++;
      }
      return got;
    },
    free(tenantId, destination, freed) {
      count(byTenant, tenantId, -freed);
      count(byDestination, `${tenantId} ${destination}`, -freed);
      used -= freed;
    },
    get used() {
      return used;
    },
  };
}
