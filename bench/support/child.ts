import { type ChildProcess, type Serializable, spawn } from "node:child_process";
import { openSync } from "node:fs";
import { devNull } from "node:os";
import { join } from "node:path";
import { type Place, placed } from "./machine.ts";

/** A process of Node's that is asked one thing at a time. */
export interface Child extends AsyncDisposable {
  /** Sends a message and resolves with the next one that comes back. @throws when the process ends instead. */
  ask<T>(message?: Serializable): Promise<T>;
}

const bench = new URL("..", import.meta.url).pathname;
const nowhere = openSync(devNull, "w");

/** Starts a program of `bench/` at its place; its standard output, where servers log, goes nowhere, or to `log`. */
export function startChild(
  place: Place,
  program: string,
  argument: unknown,
  nodeOptions: string[] = [],
  log = nowhere,
): Child {
  // The option and the variable as start.js sets them.
  const command = [
    process.execPath,
    "--max-semi-space-size=16",
    ...nodeOptions,
    join(bench, program),
    JSON.stringify(argument),
  ];
  const child = spawn(...placed(place, command), {
    stdio: ["ignore", log, "inherit", "ipc"],
    serialization: "advanced",
    env: { MALLOC_ARENA_MAX: "2", ...process.env, NODE_ENV: "production" },
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  return {
    ask: (message) => ask(child, program, message),
    async [Symbol.asyncDispose]() {
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}

function ask<T>(child: ChildProcess, program: string, message: Serializable | undefined): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const gone = (code: number | null) => reject(new Error(`${program} ended with code ${code}`));
    child.once("exit", gone);
    child.once("message", (answer) => {
      child.off("exit", gone);
      resolve(answer as T);
    });
    if (message !== undefined) child.send(message);
  });
}
