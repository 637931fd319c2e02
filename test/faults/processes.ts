import { setTimeout as sleep } from "node:timers/promises";
import { dataDirectoryOf, readUrl } from "../../src/embedded/data-directory.ts";
import { running, servingOf } from "../support/serving-processes.ts";
import { ledger } from "./ledger.ts";
import { load } from "./load.ts";
import { clear, clusterPlace } from "./place.ts";
import { killPostgres } from "./postgres-process.ts";
import { random } from "./random.ts";
import { type Act, runRounds } from "./rounds.ts";
import { firstTenant, looking, type Play } from "./scenes.ts";
import { serverProcess } from "./server-process.ts";
import { killServing } from "./serving-acts.ts";

const processes = 3;
/** One that still starts loads its modules before it looks: on a busy machine that takes more than a second. */
const orphanMsMax = 10_000;

/** Three processes on one port, with their own PostgreSQL; each part is killed in the middle of the work of 6 clients. */
export async function playProcesses({ seed, until, say }: Play): Promise<number> {
  const dataDir = await clusterPlace();
  const server = await serverProcess({ BELFRY_DATA_DIR: dataDir, BELFRY_PROCESSES: String(processes) });
  const choose = random(seed);
  const serving = () => servingOf(server.pid ?? -1);

  /** kill -9 of the process that owns the port: none that serves may outlive it for long. */
  async function killOwner() {
    const left = serving();
    await server.kill();
    for (let waited = 0; waited < orphanMsMax && left.some(running); waited += 20) await sleep(20);
    const orphans = left.filter(running);
    if (orphans.length > 0) server.complaints.push(`processes ${orphans.join(", ")} outlived the owner of the port`);
  }

  const acts: Act[] = [
    { name: "kill -9 of a serving process", run: () => killServing(server, processes, choose) },
    { name: "kill -9 of PostgreSQL", run: () => killPostgres(dataDir) },
    {
      name: "kill -9 of the owner of the port",
      async run() {
        await killOwner();
        await server.start();
      },
    },
    {
      name: "kill -9 of PostgreSQL and a serving process",
      async run() {
        await Promise.all([killPostgres(dataDir), killServing(server, processes, choose)]);
      },
    },
    {
      name: "kill -9 of PostgreSQL and the owner of the port",
      async run() {
        await Promise.all([killOwner(), killPostgres(dataDir)]);
        await server.start();
      },
    },
    {
      name: "a stop and a start",
      async run() {
        await server.stop();
        await server.start();
      },
    },
  ];
  try {
    await server.start();
    const { tenantId, headers } = await firstTenant(dataDir);
    const book = ledger();
    const clients = load({ seed, clients: 6, urls: [server.url], headers, ledger: book });
    const db = looking((readUrl(dataDirectoryOf(dataDir).urlFile) as URL).href);
    const plan = (round: number) => ({ act: acts[(round - 1) % acts.length] as Act, afterMs: choose.int(20, 400) });
    return await runRounds({ seed, plan, until, load: clients, ledger: book, servers: [server], db, tenantId, say });
  } finally {
    await server.stop();
    await clear(dataDir);
  }
}
