import { useAnswer } from "./answer.ts";
import { oneOrNull } from "./one-or-null.ts";

/**
 * Asks for the thing that the address names; null where there is no such thing (any more). As a list, it stays as it was read last
 * while the server is away.
 * @param kind sets it apart from what else is read at the address
 */
export const useOne = <T>(kind: string, ask: (signal: AbortSignal) => Promise<T | null | undefined>) =>
  useAnswer<T | null>(async (signal) => (await oneOrNull(ask(signal))) ?? null, undefined, kind);
