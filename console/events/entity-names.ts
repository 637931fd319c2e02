/** Most names that are compared for their common parts. */
const lookedAtMax = 500;

/** The parts of entities' names that say nothing in a list; empty without one. */
export interface SharedParts {
  /** A dimension's name, by which entities without a name of their own are called: `source=`. */
  readonly start: string;
  /** The end that all names with dots have in common. */
  readonly end: string;
}

const dimensionName = /^[^\s=]+=(?!.*=)/s;
/** The name of an entity without one of its own: its dimensions. */
const dimensionNames = /^[^\s=]+=[^=]*(?:, [^\s=]+=[^=]*)*$/s;

/** Finds what these names of entities have in common. */
export function sharedParts(all: readonly string[]): SharedParts {
  const names = new Set(all.slice(0, lookedAtMax));
  const starts = new Set([...names].flatMap((name) => dimensionName.exec(name)?.[0] ?? []));
  const [start = ""] = starts.size === 1 ? starts : [];
  return { start, end: sharedEnd(names) };
}

function sharedEnd(names: ReadonlySet<string>): string {
  const dotted = [...names].filter((name) => /[^.]\.[^.]+\./.test(name));
  const parts = (dotted[0] ?? "").split(".");
  const ends = parts.slice(1).map((_, at) => `.${parts.slice(at + 1).join(".")}`);
  return dotted.length > 1 ? (ends.find((end) => dotted.every((name) => name.endsWith(end))) ?? "") : "";
}

/** A name without what all names share; of a name that would be empty, all of it. Dimensions that others do not have stay, in words. */
export function entityText(name: string, { start, end }: SharedParts): string {
  const from = start !== "" && name.startsWith(start) ? start.length : 0;
  const to = end !== "" && name.endsWith(end) ? name.length - end.length : name.length;
  const text = name.slice(from, to) || name;
  return from === 0 && dimensionNames.test(text) ? text.replace(/(^|, )([^\s=]+)=/g, "$1$2: ") : text;
}

/** A name by itself: the only dimension of an entity without a name of its own is not named. */
export const plainName = (name: string) => entityText(name, sharedParts([name]));

/** Returns the short name of the entity of an event. */
export const calledOf = ({ entityDisplayName = "" }: { entityDisplayName?: string }) => entityDisplayName;
