import { type Histogram, histogram } from "../histogram.ts";

/** What was stored of one kind of data since the start, of all tenants. */
export interface IngestTally {
  /** Transactions that stored data, and how long each took, s. */
  readonly commitSec: Histogram;
  /** Items that were acknowledged. */
  items: number;
  /** Requests, and parts of large ones and of streams, whose items were acknowledged; several go in one transaction. */
  parts: number;
  /** Requests that were refused because storing them would have taken too long. */
  refused: number;
}

/** The same, with the items that wait and the transactions that run now. */
export interface LaneStats extends IngestTally {
  waiting: number;
  running: number;
}

/** What is known of a lane now. */
interface Counted {
  readonly kindName: string;
  readonly items: number;
  readonly running: readonly unknown[];
}

/** How a part hears that it is stored, but for the items at these places. */
type Done = (refused: Map<number, string>) => void;

/** The tallies of all kinds. */
export interface IngestStats {
  of(kindName: string): IngestTally;
  stats(lanes: Iterable<Counted>): Map<string, LaneStats>;
  /** `done`, with this many items counted but for those that were not stored. */
  counting(kindName: string, items: number, done: Done): Done;
}

/** Empty tallies. */
export function ingestStats(): IngestStats {
  const all = new Map<string, IngestTally>();

  function of(kindName: string): IngestTally {
    const known = all.get(kindName) ?? { commitSec: histogram(), items: 0, parts: 0, refused: 0 };
    all.set(kindName, known);
    return known;
  }

  return {
    of,
    stats(lanes) {
      const stats = new Map([...all].map(([name, tally]) => [name, { ...tally, waiting: 0, running: 0 }]));
      for (const { kindName, items, running } of lanes) {
        const own = stats.get(kindName);
        if (own === undefined) continue;
        own.waiting += items;
        own.running += running.length;
      }
      return stats;
    },
    counting: (kindName, items, done) => (refused) => {
      const tally = of(kindName);
      tally.parts += 1;
      tally.items += items - refused.size;
      done(refused);
    },
  };
}
