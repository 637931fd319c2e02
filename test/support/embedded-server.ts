// A server process that holds an embedded database and nothing else: prints {url, pid} or {error}, ends with its input.
import { startEmbedded } from "../../src/embedded/embedded.ts";

const [dataDir = ""] = process.argv.slice(2);
const quiet = { info() {}, warn() {}, error() {} };

try {
  const embedded = await startEmbedded({ dataDir, log: quiet, durable: false });
  process.stdout.write(`${JSON.stringify({ url: embedded.url, pid: embedded.pid })}\n`);
  process.stdin.on("end", () => void embedded.stop()).resume();
} catch (error) {
  const { name, message } = error as Error;
  process.stdout.write(`${JSON.stringify({ error: { name, message } })}\n`);
}
