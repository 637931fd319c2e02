import { every } from "../every.ts";

/** The hold on what one run, or one try, has claimed. */
export interface Lease {
  /** Aborts when it is another's, or `abort` was called. */
  readonly signal: AbortSignal;
  /** Whether no other server can have claimed it yet. */
  held(): boolean;
}

/** What this process has claimed. Rows of a group are renewed together. */
export interface Leases<Group, Row> {
  /** Holds rows that were claimed after `startMs`, on the clock of performance.now(). */
  begin(group: Group, rows: readonly Row[], startMs: number): Lease;
  /** Lets go of rows that are recorded. */
  end(rows: readonly Row[]): void;
  /** Aborts all that is under way. */
  abort(): void;
  stop(): void;
}

interface LeaseOptions<Group, Row> {
  /** How long the claim of a group's rows lasts. */
  leaseMs(group: Group): number;
  /** The shortest of them. */
  leaseMsMin: number;
  /** Claims rows for longer, and returns which of them are still this process's. */
  renew(group: Group, rows: readonly Row[]): Promise<(row: Row) => boolean>;
}

interface Held<Group> {
  group: Group;
  untilMs: number;
  work: AbortController;
}

// Clocks differ in their speed, by far less.
const safety = 0.95;

/** Renews leases for as long as their work takes, a third of their time before they end at the latest. */
export function leaseKeeper<Group, Row>({ leaseMs, leaseMsMin, renew }: LeaseOptions<Group, Row>): Leases<Group, Row> {
  const all = new Map<Row, Held<Group>>();

  async function prolong(group: Group, own: readonly [Row, Held<Group>][]): Promise<void> {
    const startMs = performance.now();
    const isKept = await renew(
      group,
      own.map(([row]) => row),
    );
    for (const [row, held] of own) {
      if (isKept(row)) held.untilMs = startMs + leaseMs(group) * safety;
      else if (all.get(row) === held) held.work.abort();
    }
  }

  const rounds = every(leaseMsMin / 4, () => {
    // What was claimed just now can wait for the next time.
    const old = [...all].filter(([, { group, untilMs }]) => untilMs - performance.now() < leaseMs(group) * (2 / 3));
    for (const [group, own] of Map.groupBy(old, ([, each]) => each.group)) {
      prolong(group, own).catch(() => undefined); // the database is away: the leases run out, and others claim
    }
  });

  return {
    begin(group, rows, startMs) {
      const work = new AbortController();
      const own = rows.map((): Held<Group> => ({ group, untilMs: startMs + leaseMs(group) * safety, work }));
      for (const [i, row] of rows.entries()) all.set(row, own[i] as Held<Group>);
      return { signal: work.signal, held: () => own.every(({ untilMs }) => performance.now() < untilMs) };
    },
    end(rows) {
      for (const row of rows) all.delete(row);
    },
    abort() {
      for (const { work } of all.values()) work.abort();
    },
    stop: () => void rounds.stop(),
  };
}
