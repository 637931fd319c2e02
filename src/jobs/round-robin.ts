/**
 * Does work of tenants portion by portion, a portion of each in turn: a tenant with much of it does not keep the others
 * waiting.
 * @param portion returns whether the tenant may have more
 */
export async function inTurns(
  tenantIds: readonly string[],
  going: () => boolean,
  portion: (tenantId: string) => Promise<boolean>,
): Promise<void> {
  let open = tenantIds;
  while (open.length > 0) {
    const next: string[] = [];
    for (const tenantId of open) {
      if (!going()) return;
      if (await portion(tenantId)) next.push(tenantId);
    }
    open = next;
  }
}
