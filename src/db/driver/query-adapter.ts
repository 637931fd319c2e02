import type postgres from "postgres";
import { Name, Statement } from "./statement.ts";

/** The driver's tagged template, and ours in its place. */
export type Tagged = postgres.ISql<{ bigint: bigint }>;

/** The parts of the driver's query that are used here (3.4.9, pinned; test/db/driver/connections.system.test.ts watches). */
export interface SentQuery {
  options: { onexecute?: () => unknown };
  args: unknown[];
  parameters?: unknown[];
  executed: boolean;
  handler: (query: SentQuery) => void;
  resolve: (answer: unknown) => void;
  reject: (error: unknown) => void;
  canceller: ((query: SentQuery) => Promise<void>) | null;
  active: boolean;
  cancelled: unknown;
  /** Once it is sent: whether the connection keeps it prepared, and whether it did so before. */
  prepare?: boolean;
  prepared?: boolean;
}

/** Notified of how a query has ended. */
export interface Settling {
  resolve(answer: unknown): void;
  reject(error: unknown): void;
}

/** Makes a query one of a pool or a transaction; returns what sends it. */
export type Adopt = (query: SentQuery, answer: Settling) => () => void;

/** A tagged template on a client of the driver, whose queries are adopted before they are sent. */
export function queryAdapter(inner: Tagged, adopt: Adopt): Tagged {
  const make = inner.unsafe as unknown as (...args: unknown[]) => SentQuery;
  const send = (text: string, parameters: unknown[], ended: Settling) => {
    const query = make(text, parameters, { prepare: true, simple: false });
    query.executed = true;
    adopt(query, ended)();
    return query;
  };
  const outer = (first: TemplateStringsArray | string, ...values: unknown[]) =>
    typeof first === "string" ? new Name(first) : new Statement<SentQuery>(first, values, send);
  const unsafe = (...args: unknown[]) => {
    const query = make(...args);
    const { resolve, reject } = query;
    const handler = adopt(query, { resolve, reject });
    query.handler = handler;
    return query;
  };
  const { typed, types, array } = inner;
  const json = (value: unknown) => typed(JSON.stringify(value) as never, 3802);
  return Object.assign(outer, { typed, types, array, unsafe, json }) as unknown as Tagged;
}

/**
 * Returns an answer without empty places before its rows. The driver counts rows until a statement completes: after one that failed midway, by an
 * error or a cancellation, it puts the rows of the next one behind as many as that had sent.
 */
export function fromFirstRow(answer: unknown): unknown {
  if (Array.isArray(answer) && answer.length > 0 && !(0 in answer))
    answer.splice(
      0,
      answer.findIndex((_row, place) => place in answer),
    );
  return answer;
}

const nothing = () => undefined;

/** Lets go of what a query knows that has ended: its closures live on until a full collection (src/db/driver/statement.ts). */
export function forget(query: SentQuery): void {
  query.active = false;
  query.args = [];
  query.parameters = [];
  query.resolve = nothing;
  query.reject = nothing;
  query.handler = nothing;
  query.canceller = null;
}

/** Stops a statement, and resolves when PostgreSQL has been reported. Never rejects. */
export async function cancelQuery(pending: object): Promise<void> {
  const query =
    pending instanceof Statement ? (pending.execute().sent as SentQuery | undefined) : (pending as SentQuery);
  if (query === undefined) return; // it could not be sent
  const { canceller } = query;
  query.canceller = null;
  await canceller?.(query).catch(() => undefined);
}
