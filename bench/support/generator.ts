import { spawnSync } from "node:child_process";
import type { Load, Outcome } from "../load/load.ts";
import { startChild } from "./child.ts";
import { h2load } from "./h2load.ts";
import type { Place } from "./machine.ts";

/** Puts load on a server and says how it answered. */
export interface Generator extends AsyncDisposable {
  readonly name: string;
  run(load: Load): Promise<Outcome>;
}

/** The generator of this folder, or h2load; without a wish h2load where it is installed and the requests are all the same. */
export function startGenerator(wish: string | undefined, varied: boolean, place: Place = "generator"): Generator {
  if (wish !== undefined && wish !== "node" && wish !== "h2load") throw new Error("--generator is node or h2load");
  if (varied && wish === "h2load") throw new Error("h2load sends the same body always; this bench must not");
  const installed = () => spawnSync("h2load", ["--version"]).status === 0;
  if (!varied && (wish === "h2load" || (wish === undefined && installed()))) return h2load();
  const child = startChild(place, "load/main.ts", {});
  return {
    name: "bench/load (Node)",
    async run(load) {
      const answer = await child.ask<{ outcome: Outcome } | { error: string }>(load);
      if ("error" in answer) throw new Error(answer.error);
      return answer.outcome;
    },
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}
