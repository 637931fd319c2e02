const KiB = 1024;
const MiB = 1024 * KiB;
const day = 24 * 3600;

/** Limits that are the same on every server. docs/configure.md lists those that callers and operators meet. */
export const fixedLimits = {
  /** Calls in work at once; more are answered 429. */
  waitingCallsMax: 2000,
  /** The longest time of one SQL statement. */
  statementTimeoutMs: 15_000,
  /** The longest wait for a row lock. */
  lockTimeoutMs: 5000,
  /** The longest deadline of a unary call; longer ones are cut to it. */
  deadlineMsMax: 120_000,
  /** The largest request message, on the wire and again after decompression. */
  messageBytesMax: 4 * MiB,
  /** The same for the data receiver. */
  receiverBytesMax: 16 * MiB,
  /** Memory of the requests in work; more are answered 429. */
  bodyBytesMax: 128 * MiB,
  /** Memory of the responses that wait for their clients, a quarter of it for one connection; more end their response. */
  answerBytesMax: 256 * MiB,
  /** The largest total of one client stream. */
  streamBytesMax: 1024 * MiB,
  /** The longest silence within a request, and the longest time that a response waits for its client. */
  streamIdleMs: 60_000,
  /** Streams that are open at once; more are answered 429. */
  streamsMax: 5000,
  /** Connections at once; a further one replaces one that is idle, or is closed. */
  connectionsMax: 10_000,
  /** How long deliveries wait for a destination that does not answer before they fail. */
  deliveryWaitSecMax: 3 * day,
  /** How often old occurrences are closed and deleted. */
  housekeepingMs: 60_000,
  /** After how long the jobs of a server that has died go to another one. */
  jobLeaseMs: 10_000,
  /** Bytes that triggers, destinations, rules, windows, updaters … of one kind may hold together in a tenant. */
  resourceBytesMax: 16 * MiB,
  /** Names of dimensions, metadata and custom properties of a tenant that are listed; further ones are not. */
  entityFieldsMax: 10_000,
  /** Annotations that an occurrence may have; further ones fail. */
  annotationsMax: 1000,
  /** How long deleted entities are kept; longer while they have series or events. */
  deletedEntityRetentionSec: 30 * day,
};
