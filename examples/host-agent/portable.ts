import { statfs } from "node:fs/promises";
import { availableParallelism, cpus, freemem, loadavg, networkInterfaces, platform, totalmem, uptime } from "node:os";
import type { Filesystem, NetworkInterface, Reading } from "./reading.ts";

/** What Node.js tells of any machine: no counters of disks and networks, and the file system of the working directory alone. */
export async function readAnywhere(): Promise<Reading> {
  const timeSec: Record<string, number> = {};
  for (const { times } of cpus()) {
    for (const [mode, ms] of Object.entries(times))
      timeSec[modes[mode] ?? mode] = (timeSec[modes[mode] ?? mode] ?? 0) + ms / 1000;
  }
  const root = platform() === "win32" ? process.cwd().slice(0, 3) : "/";
  return {
    timeMs: Date.now(),
    uptimeSec: uptime(),
    cpu: { count: cpus().length || availableParallelism(), timeSec },
    ...(platform() !== "win32" && { load: loadavg() as [number, number, number] }),
    memory: { limit: totalmem(), available: freemem() },
    disks: [],
    interfaces: interfacesInUse().map(([device, addresses]) => ({ device, addresses })),
    filesystems: [await readFilesystem({ mountpoint: root, type: "", device: "" })],
  };
}

const modes: Record<string, string> = { sys: "system", irq: "interrupt" };

/** Interfaces with an address that others can reach, and their addresses. */
export function interfacesInUse(): [device: string, addresses: NetworkInterface["addresses"]][] {
  return Object.entries(networkInterfaces()).flatMap(([device, addresses = []]) => {
    const reachable = addresses.filter(({ internal }) => !internal).map(({ address }) => address);
    return reachable.length === 0 ? [] : [[device, reachable]];
  });
}

/** How full a file system is. */
export async function readFilesystem(of: Pick<Filesystem, "mountpoint" | "type" | "device">): Promise<Filesystem> {
  const { blocks, bfree, bavail, bsize } = await statfs(of.mountpoint);
  const usedBlocks = blocks - bfree;
  // What only the superuser may fill counts as neither used nor free, as in df.
  const utilization = usedBlocks === 0 ? 0 : usedBlocks / (usedBlocks + bavail);
  return { ...of, limit: blocks * bsize, used: usedBlocks * bsize, utilization };
}
