import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { median } from "./compare.ts";
import type { GuardLine } from "./guard-lines.ts";
import type { GuardedServer } from "./guarded-server.ts";

/** Events that are on their way at once: each is followed by another when its webhook has come. */
const atOnce = 8;
/** A webhook comes within this time. */
const arriveMsMax = 30_000;

/** The line from an event that is sent to the webhook that reports it; `start` makes the rule for that. */
export interface WebhookLine extends AsyncDisposable {
  line: GuardLine;
  start(server: GuardedServer): Promise<void>;
}

/** Opens a receiver of webhooks in this process. */
export async function webhookLine(): Promise<WebhookLine> {
  const waiting = new Map<string, () => void>();
  const receiver = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      waiting.get((JSON.parse(body) as { event?: { name: string } }).event?.name ?? "")?.();
      response.end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  const { port } = receiver.address() as AddressInfo;
  let sent = 0;

  /** Sends an event, and resolves with the time until its webhook came, ms. */
  async function one({ call }: GuardedServer): Promise<number> {
    sent += 1;
    const name = `guard ${sent}`;
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.set(name, resolve);
    const event = {
      name,
      timestamp: String(Date.now()),
      dimensions: { host: `web-${sent % 100}` },
      severity: "SEVERITY_ERROR",
      status: "STATUS_OPEN",
    };
    const beganMs = performance.now();
    await call("rule", "data-receiver/events", { events: [event] });
    const late = sleep(arriveMsMax, undefined, { ref: false }).then(() => {
      throw new Error(`no webhook reports the event ${name} within ${arriveMsMax / 1000} s`);
    });
    await Promise.race([promise, late]);
    waiting.delete(name);
    return performance.now() - beganMs;
  }

  return {
    line: {
      name: "event → webhook",
      async run(server, countMs) {
        const untilMs = performance.now() + countMs;
        const tookMs: number[] = [];
        const send = async () => {
          do tookMs.push(await one(server));
          while (performance.now() < untilMs);
        };
        await Promise.all(Array.from({ length: atOnce }, send));
        return { items: tookMs.length, p50Ms: median(tookMs), bad: 0 };
      },
    },
    async start({ call }) {
      const clause = { contains: { field: "name", value: "guard" } };
      const webhook = { url: `http://127.0.0.1:${port}` };
      await call("rule", "notification/triggers", { name: "guard", type: { event: { query: { clause } } } });
      await call("rule", "notification/destinations", { name: "guard", type: { webhook } });
      const names = { triggerNames: ["guard"], destinationNames: ["guard"] };
      await call("rule", "notification/rules", { name: "guard", enabled: true, message: "{{{event.name}}}", ...names });
    },
    async [Symbol.asyncDispose]() {
      receiver.closeAllConnections();
      await new Promise((resolve) => receiver.close(resolve));
    },
  };
}
