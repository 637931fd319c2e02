import type { Config } from "../config/settings.ts";

const MiB = 1024 * 1024;

/** Twice the largest message, and connections that read slowly beside others: less would refuse what one server takes. */
const [bodyBytesMin, answerBytesMin] = [32 * MiB, 64 * MiB];

/**
 * Bounds of a machine, divided between the processes that serve its port. The pool stays that of a process, and so do lookups of sessions,
 * which take of it; sessions of a key are counted in the database.
 */
export function limitShares(config: Config, processes: number): Config {
  const share = (bound: number) => Math.ceil(bound / processes);
  return {
    ...config,
    waitingCallsMax: share(config.waitingCallsMax),
    bodyBytesMax: Math.max(share(config.bodyBytesMax), Math.min(bodyBytesMin, config.bodyBytesMax)),
    answerBytesMax: Math.max(share(config.answerBytesMax), Math.min(answerBytesMin, config.answerBytesMax)),
    streamsMax: share(config.streamsMax),
    connectionsMax: share(config.connectionsMax),
  };
}
