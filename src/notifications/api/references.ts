/** How many of the rules that use a thing are named when it cannot be deleted. */
export const usersNamed = 3;

/** Which rules use a thing, for the error that it cannot be deleted: up to `usersNamed` by name; one more stands for others. */
export function inRules(rules: readonly { name: string }[]): string {
  const names = rules.slice(0, usersNamed).map(({ name }) => JSON.stringify(name));
  const some = rules.length > usersNamed ? `${names.join(", ")} and others` : names.join(", ");
  return rules.length === 1 ? `rule ${some}` : `rules ${some}`;
}
