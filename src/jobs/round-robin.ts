import { fairQueue } from "../fair-queue.ts";

/** Tenants whose work has failed. */
export interface FailedTurns {
  /** The first of them, and why. */
  tenantId: string;
  err: unknown;
  /** How many there are. */
  tenants: number;
}

/**
 * Does work of tenants portion by portion, a portion of each in turn: a tenant with much of it does not keep the others
 * waiting, nor does one whose work fails, as that of a tenant whose node is away.
 * @param portion returns whether the tenant may have more; one that fails is the tenant's last
 * @param failed is called once, at the end, where a portion has failed
 */
export async function inTurns(
  tenantIds: readonly string[],
  going: () => boolean,
  portion: (tenantId: string) => Promise<boolean>,
  failed: (turns: FailedTurns) => void,
): Promise<void> {
  let failures: FailedTurns | undefined;
  const line = fairQueue<string>();
  for (const id of tenantIds) line.add([id], id);
  for (let id = line.next(); id !== undefined && going(); id = line.next()) {
    try {
      if (await portion(id)) line.add([id], id);
    } catch (err) {
      failures ??= { tenantId: id, err, tenants: 0 };
      failures.tenants += 1;
    }
  }
  if (failures !== undefined) failed(failures);
}
