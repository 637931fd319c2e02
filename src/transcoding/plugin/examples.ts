import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A request of one operation and what a server answered to it. */
export interface Example {
  /** The RPC, as in `TriggerService/CreateTrigger`. */
  readonly rpc: string;
  readonly path?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  /** The answer's body; of a stream, its first records. */
  readonly answer?: unknown;
}

/** All examples in the `.json` files of a folder, a list each, by their RPC. */
export function readExamples(folder: string): ReadonlyMap<string, Example> {
  const found = new Map<string, Example>();
  for (const path of globSync("*.json", { cwd: folder }).sort()) {
    for (const example of JSON.parse(readFileSync(join(folder, path), "utf8")) as Example[]) {
      if (found.has(example.rpc)) throw new Error(`${path}: ${example.rpc} has two examples`);
      found.set(example.rpc, example);
    }
  }
  return found;
}
