import { raw } from "../support/clients.ts";
import type { TestServer } from "../support/server.ts";
import type { TestTenant } from "../support/tenant.ts";

/** Calls /v1 with JSON, as a tenant's manager does. What is refused throws with the server's words. */
export function v1(server: TestServer, { headers }: TestTenant) {
  return async (path: string, body: object) => {
    const sent = { ...headers, "content-type": "application/json" };
    const answer = await raw(server.target, "2", { path, headers: sent, body: [Buffer.from(JSON.stringify(body))] });
    const text = answer.body.toString();
    if (answer.status !== 200) throw new Error(`${path}: ${text}`);
    return JSON.parse(text);
  };
}
