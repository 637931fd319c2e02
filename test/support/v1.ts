/** An answer of /v1. */
export interface V1Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: JSON of any shape, which the test itself looks into
  body: any;
  headers: Headers;
}

/** Calls /v1 of a plain-text server with JSON in and out. A string is sent as it is. */
export function v1(url: string, headers: Record<string, string>) {
  return async (method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<V1Answer> => {
    const answer = await fetch(url + path, {
      method,
      headers: { ...headers, ...(body !== undefined && { "content-type": "application/json" }) },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      ...(signal && { signal }),
    });
    const text = await answer.text();
    return { status: answer.status, body: text === "" ? undefined : JSON.parse(text), headers: answer.headers };
  };
}
