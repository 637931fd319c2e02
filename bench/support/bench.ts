import type { Calls } from "./calls.ts";
import { startChild } from "./child.ts";
import { type Competitor, compare } from "./compare.ts";
import { type Database, startDatabase } from "./database.ts";
import { startGenerator } from "./generator.ts";
import { machineFacts } from "./machine.ts";
import { commandOf, type Settings, settingsOf } from "./settings.ts";
import { comparisonTable } from "./table.ts";

/** A comparison of this server, over all of its protocols, with bare Fastify and @grpc/grpc-js. */
export interface Bench {
  name: string;
  /** What is asked, and what a reader must know of it. */
  notes: readonly string[];
  /** The program of `bench/servers/` that is measured. */
  program: string;
  calls(key: Record<string, string>): Calls;
  /** What a request holds more than one of. */
  items?: { name: string; count: number };
  rounds: number;
  seconds: number;
  /** Looks whether what this many answers of this server said is true, and says so. */
  check?(database: Database, answered: number): Promise<string>;
}

type Served = Competitor["server"];

/** Runs a comparison and prints its table. Options: see bench/README.md. */
export async function runBench(bench: Bench): Promise<void> {
  const args = process.argv.slice(2);
  const settings = settingsOf(args, { rounds: bench.rounds, countMs: bench.seconds * 1000 });
  await using stack = new AsyncDisposableStack();
  const database = stack.use(await startDatabase());
  const profile =
    settings.profile === undefined
      ? []
      : ["--cpu-prof", `--cpu-prof-dir=${settings.profile}`, "--cpu-prof-interval=500"];

  async function serve(program: string, argument: unknown, nodeOptions: string[] = []): Promise<Served> {
    const child = stack.use(startChild("server", `servers/${program}.ts`, argument, nodeOptions));
    return { child, ...(await child.ask<{ port: number }>()) };
  }

  const calls = bench.calls(database.key);
  const belfry = await serve(bench.program, database.env, profile);
  const answer = await answerOf(belfry, calls);
  const fastify = await serve("fastify", { read: answer, put: answer });
  const oneLine = await serve("fastify", { read: answer, put: answer, oneLine: true });
  const grpcJs = await serve("grpc-js", {});
  const generator = stack.use(startGenerator(settings.generator, calls.rest.vary !== undefined));
  console.log(`${commandOf(bench.name, args)}\n`);
  for (const line of [...bench.notes, ...machineFacts(database.version), howItIsDone(generator.name, settings)]) {
    console.log(line);
  }
  const all: Competitor[] = [
    { name: "Fastify, JSON", server: fastify, request: calls.rest },
    { name: "Fastify, JSON, one line", server: oneLine, request: calls.rest },
    { name: "/v1, JSON", server: belfry, request: calls.rest, baselines: ["Fastify, JSON", "Fastify, JSON, one line"] },
    { name: "Connect, JSON", server: belfry, request: calls.connectJson, baselines: ["Fastify, JSON"] },
    { name: "Connect, binary", server: belfry, request: calls.connectBinary, baselines: ["Fastify, JSON"] },
    ...(calls.connectGet
      ? [{ name: "Connect, GET", server: belfry, request: calls.connectGet, baselines: ["Fastify, JSON"] }]
      : []),
    ...(calls.grpcWeb
      ? [{ name: "gRPC-Web", server: belfry, request: calls.grpcWeb, baselines: ["Fastify, JSON"] }]
      : []),
    { name: "grpc-js, gRPC", server: grpcJs, request: calls.grpc },
    { name: "gRPC", server: belfry, request: calls.grpc, baselines: ["grpc-js, gRPC"] },
  ];
  const wanted = all.filter(({ name }) => settings.only === undefined || name.includes(settings.only));
  const competitors = all.filter(
    (each) => wanted.includes(each) || wanted.some(({ baselines }) => baselines?.includes(each.name)),
  );
  const lines = await compare(competitors, generator, settings);
  console.log(`\n${comparisonTable(lines, bench.items)}\n`);
  const busy = lines.filter((line) => (line.busy ?? 0) > 0.9).map(({ name }) => name);
  if (busy.length > 0) console.log(`The generator itself was busy all the time with: ${busy.join("; ")}`);
  if (bench.check !== undefined) {
    const ours = lines.filter(({ name }) => competitors.some((each) => each.name === name && each.server === belfry));
    console.log(await bench.check(database, 1 + ours.reduce((sum, { answered }) => sum + answered, 0)));
  }
}

/** The JSON that the server answers, for those that answer the same without any work. */
async function answerOf({ port }: Served, { rest }: Calls): Promise<object> {
  const { method, headers, body } = rest;
  const response = await fetch(`http://127.0.0.1:${port}${rest.path}`, { method, headers, body: body ?? null });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${rest.path} answers ${response.status}: ${text}`);
  if (JSON.stringify(JSON.parse(text)) !== text.trimEnd())
    throw new Error("the answer's bytes are not those of JSON.stringify");
  return JSON.parse(text);
}

function howItIsDone(generator: string, { rounds, countMs, connections, streams }: Settings): string {
  const inWork =
    streams === 1 ? "one request in work on each" : `${streams} streams on each over HTTP/2, one over HTTP/1.1`;
  return `${generator}: ${connections} connections, ${inWork}; medians of ${rounds} rounds of ${countMs / 1000} s; no TLS`;
}
