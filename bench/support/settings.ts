import { parseArgs } from "node:util";

/** What the command line of a bench may change. */
export interface Settings {
  rounds: number;
  /** Length of one measurement. */
  countMs: number;
  warmUpMs: number;
  connections: number;
  streams: number;
  generator: string | undefined;
  /** Only competitors whose name holds it, and their baselines. */
  only: string | undefined;
  /** How many rows are searched through, where a bench does so at several sizes. */
  size: number | undefined;
  /** Directory for CPU profiles of the servers. */
  profile: string | undefined;
  /** More options of Node's for the server. */
  node: string[];
}

type Defaults = Pick<Settings, "rounds" | "countMs">;

/** Reads the options that follow a bench's name. */
export function settingsOf(args: string[], defaults: Defaults): Settings {
  const { values } = parseArgs({
    args,
    options: {
      rounds: { type: "string" },
      seconds: { type: "string" },
      "warm-up": { type: "string" },
      connections: { type: "string" },
      streams: { type: "string" },
      generator: { type: "string" },
      only: { type: "string" },
      size: { type: "string" },
      profile: { type: "string" },
      node: { type: "string", multiple: true },
    },
  });
  return {
    rounds: positive("rounds", values.rounds, defaults.rounds),
    countMs: positive("seconds", values.seconds, defaults.countMs / 1000) * 1000,
    warmUpMs: positive("warm-up", values["warm-up"], 2) * 1000,
    connections: positive("connections", values.connections, 8),
    streams: positive("streams", values.streams, 1),
    generator: values.generator,
    only: values.only,
    size: values.size === undefined ? undefined : positive("size", values.size, 0),
    profile: values.profile,
    node: values.node ?? [],
  };
}

function positive(name: string, text: string | undefined, fallback: number): number {
  const number = Number(text ?? fallback);
  if (!(number > 0)) throw new Error(`--${name} must be a number above 0`);
  return number;
}

/** The options as they were given, for the head of a table. */
export function commandOf(bench: string, args: readonly string[]): string {
  return ["npm run bench --", bench, ...args].join(" ");
}
