/** Knows whether the database has room to store anything. */
export interface DiskSpace {
  /** True from a statement that found no room until a probe finds some. */
  readonly full: boolean;
  /** Sees what a statement has failed with. */
  note(error: unknown): void;
  stop(): void;
}

interface Options {
  /** Writes about as much as a batch of data. @throws while there is no room */
  probe(): Promise<unknown>;
  probeIntervalMs?: number;
}

/** SQLSTATEs of a full disk, and of one that takes nothing. */
const codes = new Set(["53100", "58030"]);
/** Tells whether PostgreSQL failed because its disk has no room, or takes nothing. */
export const isFull = (error: unknown) => codes.has(String((error as { code?: unknown } | null)?.code));

/** Takes room for granted until a statement fails for want of it: what is stored most of the time needs no probe. */
export function diskSpace({ probe, probeIntervalMs = 1000 }: Options): DiskSpace {
  let full = false;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const later = () => {
    if (!stopped) timer = setTimeout(look, probeIntervalMs).unref();
  };
  async function look() {
    try {
      await probe();
      full = false;
    } catch {
      later(); // also while the database is away
    }
  }

  return {
    get full() {
      return full;
    },
    note(error) {
      if (full || !isFull(error)) return;
      full = true;
      later();
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
