import { Code, ConnectError } from "@connectrpc/connect";

/** What a call answers, or null where there is no such thing (any more). */
export async function oneOrNull<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (error) {
    if (ConnectError.from(error).code === Code.NotFound) return null;
    throw error;
  }
}
