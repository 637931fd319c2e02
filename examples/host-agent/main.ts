// Watches the machine that it runs on, and sends what it sees: `npm run agent`, beside `npm start`. See README.md.
import { readFileSync } from "node:fs";
import { platform } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { startAgent } from "./agent.ts";
import { ownKey } from "./key.ts";
import { readLinux } from "./linux.ts";
import { readAnywhere } from "./portable.ts";
import { readSettings, type Settings } from "./settings.ts";

const flushMs = 5000;
const log = (line: string) => console.log(`${new Date().toISOString()} ${line}`);

/** A way to the server that sends the key with every call, and notices when nothing answers at its other end. */
function openTransport({ url, caFile }: Settings, key: string) {
  const addKey: Interceptor = (next) => (request) => {
    request.header.set("service-api-key", key);
    return next(request);
  };
  return createGrpcTransport({
    baseUrl: url,
    ...(caFile !== undefined && { nodeOptions: { ca: readFileSync(caFile) } }),
    interceptors: [addKey],
    defaultTimeoutMs: 20_000,
    pingIntervalMs: 20_000,
  });
}

/** The settings and the key; while the server is not there yet it is waited for, wherever it comes. */
async function waitForServer(): Promise<{ settings: Settings; key: string }> {
  for (let tries = 0; ; tries++) {
    const settings = readSettings(process.env);
    try {
      return { settings, key: await ownKey(settings, (key) => openTransport(settings, key), log) };
    } catch (error) {
      if (!(error instanceof ConnectError) || error.code !== Code.Unavailable) throw error;
      if (tries === 0) log(`waiting for the server at ${settings.url}: ${error.message}`);
      await sleep(1000);
    }
  }
}

async function main() {
  const { settings, key } = await waitForServer();
  const { url, source, intervalMs } = settings;
  const receiver = createClient(DataReceiverService, openTransport(settings, key));
  const agent = startAgent({ ...settings, receiver, read: platform() === "linux" ? readLinux : readAnywhere, log });
  log(`${source} is read every ${intervalMs / 1000} s and sent to ${url}; Ctrl-C ends it`);
  let stopping = false;
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      if (stopping) return;
      stopping = true;
      void agent.stop(flushMs).then((all) => {
        log(all ? "all is sent" : `what is left stays in ${settings.bufferFolder} and is sent next time`);
        process.exit(0);
      });
    });
  }
}

// A log that cannot be written ends nothing.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);

main().catch((error) => {
  console.error(`host agent: ${error.message}`);
  process.exitCode = 1;
});
