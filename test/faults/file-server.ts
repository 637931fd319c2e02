import { readFileSync } from "node:fs";
import { afterAll } from "vitest";
import type { Sql } from "../../src/db/connect.ts";
import { testDatabase } from "../support/database.ts";
import { clear, place } from "./place.ts";
import { patient, type ServerProcess, serverProcess } from "./server-process.ts";

/** Starts a server for a test file, with a database and a folder of its own; they end with the file. Bounds: as `patient` takes them. */
export async function fileServer(
  env: Record<string, string> = {},
  bounds?: Parameters<typeof patient>[0],
): Promise<{ server: ServerProcess; sql: Sql }> {
  const { sql, url } = await testDatabase();
  const dataDir = await place();
  const server = await serverProcess({ ...patient(bounds), BELFRY_DATA_DIR: dataDir, DATABASE_URL: url, ...env });
  await server.start();
  afterAll(async () => {
    await server.stop();
    await clear(dataDir);
  });
  return { server, sql };
}

/** Reads what a process holds (`VmRSS`), or has held at most (`VmHWM`), in bytes. */
export function memoryBytes({ pid }: ServerProcess, name: "VmRSS" | "VmHWM" = "VmRSS"): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) * 1024;
}
