import { openHttp2, type Target } from "../support/clients.ts";
import type { HostileLoad } from "./hostile-loads.ts";

type Headers = Record<string, string>;

/** Calls of one connection over /v1: the status, and the text of the answer. */
function caller(target: Target, headers: Headers) {
  const { send, close } = openHttp2(target);
  return {
    close,
    async call(path: string, body: object): Promise<string> {
      const all = { ...headers, "content-type": "application/json" };
      const answer = await send({ path: `/v1/${path}`, headers: all, body: [Buffer.from(JSON.stringify(body))] });
      return `${answer.status} ${String(answer.body).slice(0, 200)}`;
    },
  };
}

const event = (i: number, body: string) => ({
  name: `event ${i}`,
  timestamp: String(Date.now()),
  severity: "SEVERITY_ERROR",
  status: "STATUS_OPEN",
  dimensions: { source: `host ${i % 100}` },
  body,
});

/** Whether an answer is good, or a refusal in our form: what is beyond a bound may be refused. */
const refusedOr200 = (answer: string) => (/^(200|400|429) /.test(answer) ? [] : [answer]);

/** A window whose cron year is one value many times. */
export function cronWindow(bytes = 20_000): HostileLoad {
  return {
    name: `a window whose cron year has ${bytes / 1000} KB`,
    async prepare(target, headers) {
      const { call, close } = caller(target, headers);
      let made = 0;
      return {
        close,
        async run() {
          made += 1;
          const recurrence = { type: 7, interval: 1, cronMinutes: "0", year: "*/1,".repeat(bytes / 4).slice(0, -1) };
          const schedule = { start: Date.now() + 3_600_000, duration: 60_000, timeZone: "UTC", recurrence };
          const specification = { name: `window ${made}`, schedule, maintenanceState: 300, query: {} };
          return refusedOr200(await call("modelcontext/maintwindows", { specification }));
        },
      };
    },
  };
}

/** Rules that look for texts in the bodies of events, as many as are let in, and batches of events that none of them matches. */
export function containsRules(triggers = 3000, clauses = 12, bodyBytes = 100): HostileLoad {
  return {
    name: `${triggers.toLocaleString("en")} triggers of ${clauses} contains, and batches of 200 events`,
    async prepare(target, headers) {
      const { call, close } = caller(target, headers);
      const webhook = { webhook: { url: "https://example.com/" } };
      await call("notification/destinations", { name: "nowhere", type: webhook });
      const names: string[] = [];
      for (let i = 0; i < triggers; i += 1) {
        const values = Array.from({ length: clauses }, (_, n) => ({
          contains: { field: "body", value: `text ${i}-${n}` },
        }));
        const query = { clause: { or: { clauses: values } } };
        const answer = await call("notification/triggers", { name: `t${i}`, type: { event: { query } } });
        if (!answer.startsWith("200")) break;
        names.push(`t${i}`);
      }
      for (let from = 0; from < names.length; from += 100) {
        const rule = { triggerNames: names.slice(from, from + 100), destinationNames: ["nowhere"], message: "x" };
        const answer = await call("notification/rules", { name: `r${from}`, enabled: true, ...rule });
        if (!answer.startsWith("200")) break;
      }
      return {
        close,
        async run() {
          const events = Array.from({ length: 200 }, (_, i) => event(i, "x".repeat(bodyBytes)));
          return refusedOr200(await call("data-receiver/events", { events }));
        },
      };
    },
  };
}

/** Rules that make events and so cause each other, and one event. */
export function chainedRules(rules = 10): HostileLoad {
  return {
    name: `${rules} rules that make events and cause each other, and an event now and then`,
    async prepare(target, headers) {
      const { call, close } = caller(target, headers);
      const clause = { contains: { field: "name", value: "event" } };
      await call("notification/triggers", { name: "all", type: { event: { query: { clause } } } });
      for (let i = 0; i < rules; i += 1) {
        const made = { nameTemplate: `event ${i} {{{event.name}}}`, typeTemplate: "chain", summaryTemplate: "made" };
        const type = { event: { ...made, severity: "SEVERITY_INFO" } };
        await call("notification/destinations", { name: `d${i}`, type });
        const rule = { triggerNames: ["all"], destinationNames: [`d${i}`], message: "x" };
        const answer = await call("notification/rules", { name: `r${i}`, enabled: true, ...rule });
        if (!answer.startsWith("200")) throw new Error(`rule ${i}: ${answer}`);
      }
      let sent = 0;
      return {
        close,
        async run() {
          sent += 1;
          return refusedOr200(await call("data-receiver/events", { events: [event(sent, "")] }));
        },
      };
    },
  };
}
