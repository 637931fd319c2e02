/**
 * Whether PostgreSQL refuses a statement for what it was to store: a value, a reference or a missing place, a size (classes of SQLSTATE).
 * Any other error says nothing of that: what is not known may pass.
 */
export const isContent = (error: unknown): boolean =>
  /^(22|23|54)[0-9A-Z]{3}$/.test(String((error as { code?: unknown } | null)?.code));
