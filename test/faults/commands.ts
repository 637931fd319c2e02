import { spawn } from "node:child_process";

/** Runs a command on a database as an operator does, with the entry point of a version. Returns what it said. @throws that when it did not succeed */
export async function runCommand(
  main: string,
  url: string,
  args: readonly string[],
  { env = {}, timeoutMs = 300_000 }: { env?: Record<string, string>; timeoutMs?: number } = {},
): Promise<string> {
  const child = spawn(process.execPath, [main, ...args], {
    env: { PATH: process.env.PATH, DATABASE_URL: url, ...env },
    timeout: timeoutMs,
    killSignal: "SIGKILL",
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said += text));
  const ended = await new Promise((resolve) => child.once("close", (code, signal) => resolve(code ?? signal)));
  if (ended !== 0) throw new Error(`${args.join(" ")} ended with ${ended}: ${said}`);
  return said;
}
