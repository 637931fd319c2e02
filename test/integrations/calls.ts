import { rawHttp1 } from "../support/clients.ts";
import type { TestServer } from "../support/server.ts";

export interface ToolAnswer {
  status: number;
  /** As JSON where it is. */
  // biome-ignore lint/suspicious/noExplicitAny: JSON of any shape, which the test itself looks into
  body: any;
  bytes: Buffer;
  headers: Record<string, string | string[] | undefined>;
}

/** Calls as a tool does: with a bearer's key, and a body that is sent as it is. */
export function tool(server: Pick<TestServer, "target">, headers: Record<string, string>) {
  const { "service-api-key": key = "" } = headers;
  return async (
    method: string,
    path: string,
    body?: unknown,
    more: Record<string, string> = {},
  ): Promise<ToolAnswer> => {
    const bytes =
      typeof body === "string" || Buffer.isBuffer(body)
        ? Buffer.from(body as string)
        : Buffer.from(JSON.stringify(body ?? null));
    const answer = await rawHttp1(server.target, {
      method,
      path,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body !== undefined && { "content-type": "application/json", "content-length": String(bytes.length) }),
        ...more,
      },
      ...(body !== undefined && { body: [bytes] }),
    });
    const text = answer.body.toString();
    const json = String(answer.headers["content-type"]).startsWith("application/json") && text !== "";
    return { status: answer.status, body: json ? JSON.parse(text) : text, bytes: answer.body, headers: answer.headers };
  };
}
