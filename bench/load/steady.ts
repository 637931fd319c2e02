// A process that sends requests at a given rate, whether they are answered or not: takes a SteadyLoad as message.
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { bodyOf } from "./body.ts";
import { wholeLength } from "./http1.ts";
import { type LoadRequest, quantile } from "./load.ts";

/** Requests over HTTP/1.1 at a steady rate. */
export interface SteadyLoad {
  port: number;
  request: LoadRequest;
  perSec: number;
  forMs: number;
  /** As many are open from the start, and take turns: each is a client's. */
  connectionsMin?: number;
  /** Requests that are due while all of these wait for answers are sent late, and count from when they were due. */
  connectionsMax: number;
}

/** What a part of the requests came to; times are those of good answers. */
export interface SteadyOutcome {
  good: number;
  refused: number;
  /** Neither good nor 429. */
  other: number;
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
  /** How late this process sent them, p99: a part of the times that is not the server's. */
  lateMs: number;
}

interface Answer {
  dueMs: number;
  lateMs: number;
  tookMs: number;
  status: number;
}

async function run({
  port,
  request,
  perSec,
  forMs,
  connectionsMin,
  connectionsMax,
}: SteadyLoad): Promise<SteadyOutcome[]> {
  const answers: Answer[] = [];
  const idle: ((dueMs: number) => void)[] = [];
  const late: number[] = [];
  let open = 0;
  let sent = 0;

  function answered({ dueMs, sentMs }: { dueMs: number; sentMs: number }, status: number): void {
    answers.push({ dueMs, lateMs: sentMs - dueMs, tookMs: performance.now() - dueMs, status });
  }

  function connection(): void {
    open += 1;
    const { bytes, next } = bodyOf(request);
    const headers = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const head = Buffer.from(
      `${request.method} ${request.path} HTTP/1.1\r\nhost: localhost:${port}\r\n${headers.join("")}content-length: ${bytes.byteLength}\r\n\r\n`,
    );
    const socket: Socket = connect({ port, host: "127.0.0.1", noDelay: true });
    let working: { dueMs: number; sentMs: number } | undefined;
    let received: Buffer | undefined;

    function send(dueMs: number): void {
      working = { dueMs, sentMs: performance.now() };
      next();
      socket.cork();
      socket.write(head);
      socket.write(bytes);
      socket.uncork();
    }
    function ready(): void {
      working = undefined;
      const dueMs = late.shift();
      if (dueMs === undefined) idle.push(send);
      else send(dueMs);
    }
    socket.on("connect", ready);
    socket.on("data", (chunk: Buffer) => {
      received = received === undefined ? chunk : Buffer.concat([received, chunk]);
      const length = wholeLength(received);
      if (length === undefined || received.byteLength < length || working === undefined) return;
      const status = Number(received.toString("latin1", 9, 12));
      received = undefined;
      answered(working, status);
      ready();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      open -= 1;
      if (working !== undefined) answered(working, 0);
      const at = idle.indexOf(send);
      if (at >= 0) idle.splice(at, 1);
    });
    closing.push(() => socket.destroy());
  }

  const closing: (() => void)[] = [];
  const first = connectionsMin ?? Math.min(64, connectionsMax);
  for (let i = 0; i < first; i += 1) connection();
  for (let waits = 0; idle.length < first && waits < 1000; waits += 1) await sleep(10);
  const startMs = performance.now();
  for (let elapsedMs = 0; elapsedMs < forMs; elapsedMs = performance.now() - startMs) {
    for (; sent < (elapsedMs * perSec) / 1000; sent += 1) {
      const dueMs = startMs + (sent * 1000) / perSec;
      const send = connectionsMin === undefined ? idle.pop() : idle.shift();
      if (send !== undefined) send(dueMs);
      else {
        late.push(dueMs);
        if (open < connectionsMax) connection();
      }
    }
    await sleep(1);
  }
  while (answers.length < sent && performance.now() - startMs < forMs + 30_000) await sleep(10);
  for (const close of closing) close();
  await sleep(50);
  return [outcome(answers), ...seconds(answers, startMs)];
}

/** The same, second by second. */
function seconds(answers: readonly Answer[], startMs: number): SteadyOutcome[] {
  const parts: Answer[][] = [];
  for (const answer of answers) {
    const second = Math.floor((answer.dueMs - startMs) / 1000);
    parts[second] ??= [];
    parts[second].push(answer);
  }
  return Array.from(parts, (part) => outcome(part ?? []));
}

function outcome(answers: readonly Answer[]): SteadyOutcome {
  const good = answers.filter(({ status }) => status >= 200 && status < 300);
  const refused = answers.filter(({ status }) => status === 429).length;
  const sorted = Float64Array.from(good, ({ tookMs }) => tookMs).sort();
  return {
    good: good.length,
    refused,
    other: answers.length - good.length - refused,
    p50Ms: quantile(sorted, 0.5),
    p99Ms: quantile(sorted, 0.99),
    maxMs: sorted.at(-1) ?? Number.NaN,
    lateMs: quantile(Float64Array.from(good, ({ lateMs }) => lateMs).sort(), 0.99),
  };
}

process.on("message", async (load: SteadyLoad) => {
  process.send?.(await run(load));
});
process.on("disconnect", () => process.exit(0));
