const codeOf = (error: unknown) => String((error as { code?: unknown } | null)?.code);

/**
 * Whether PostgreSQL refuses a statement for what it was to store: a value, a reference or a missing place, a size (classes of SQLSTATE).
 * Any other error says nothing of that: what is not known may pass.
 */
export const isContent = (error: unknown): boolean => /^(22|23|54)[0-9A-Z]{3}$/.test(codeOf(error));

/** Whether a row has no partition to lie in. */
export const lacksPartition = (error: unknown): boolean =>
  /^no partition of relation .* found for row/.test((error as Error | null)?.message ?? "");
