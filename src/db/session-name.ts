/**
 * The number of the formats of what this version stores. It rises by one in a release that stores what the release before cannot
 * read, together with what `src/db/formats.ts` knows of it.
 */
export const formatsNumber = 2;

/** Names a connection for `pg_stat_activity`: what it is for, and the formats that its process reads. */
export const sessionName = (kind?: string): string => ["belfry", formatsNumber, ...(kind ? [kind] : [])].join(" ");

/** Tells from a connection's name whether it is of a process that cannot read all that this version stores. */
export function isOfBefore(name: string): boolean {
  const [, number] = /^belfry(?: (\d+))?(?: |$)/.exec(name) ?? [undefined, `${formatsNumber}`];
  return Number(number ?? 0) < formatsNumber;
}
