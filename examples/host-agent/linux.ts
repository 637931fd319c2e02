import { existsSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { interfacesInUse, readFilesystem } from "./portable.ts";
import type { Disk, Filesystem, NetworkInterface, Reading } from "./reading.ts";

/** What Linux tells in the files below /proc and /sys (proc(5), and the kernel's admin-guide/iostats). */
export async function readLinux(): Promise<Reading> {
  const [stat, uptime, load, memory] = await Promise.all(
    ["stat", "uptime", "loadavg", "meminfo"].map((name) => readFile(`/proc/${name}`, "utf8")),
  );
  const kib = new Map(
    [...(memory ?? "").matchAll(/^(\w+):\s+(\d+) kB$/gm)].map(([, name, value]) => [name, Number(value)]),
  );
  const bytes = (name: string) => (kib.get(name) ?? 0) * 1024;
  const swap = { limit: bytes("SwapTotal"), used: bytes("SwapTotal") - bytes("SwapFree") };
  const [disks, interfaces, filesystems] = await Promise.all([readDisks(), readInterfaces(), readFilesystems()]);
  return {
    timeMs: Date.now(),
    uptimeSec: Number.parseFloat(uptime ?? ""),
    cpu: readCpu(stat ?? ""),
    load: (load ?? "").split(" ").slice(0, 3).map(Number) as [number, number, number],
    memory: { limit: bytes("MemTotal"), available: bytes("MemAvailable") },
    ...(swap.limit > 0 && { swap }),
    disks,
    interfaces,
    filesystems,
  };
}

/** The columns of /proc/stat, as OpenTelemetry calls them (cpu.mode). */
const modes = ["user", "nice", "system", "idle", "iowait", "interrupt", "softirq", "steal"];
const ticksPerSec = 100; // USER_HZ, the same on every Linux that people use

function readCpu(stat: string): Reading["cpu"] {
  const ticks = /^cpu +(.+)$/m.exec(stat)?.[1]?.split(" ").map(Number) ?? [];
  const timeSec = Object.fromEntries(modes.map((mode, i) => [mode, (ticks[i] ?? 0) / ticksPerSec]));
  return { count: stat.match(/^cpu\d/gm)?.length ?? 1, timeSec };
}

const sectorBytes = 512; // in these files, whatever the disk's own sectors are

async function readDisks(): Promise<Disk[]> {
  const text = await readFile("/proc/diskstats", "utf8").catch(() => "");
  const rows = text.split("\n").map((line) => line.trim().split(/\s+/));
  // Partitions have no folder here; what only looks like a disk (loop devices, memory, volumes on other disks) has no device.
  const whole = rows.filter(([, , device]) => existsSync(`/sys/block/${device}/device`));
  return await Promise.all(
    whole.map(async ([, , device = "", ...columns]) => {
      const [reads = 0, , readSectors = 0, , writes = 0, , writtenSectors = 0, , , ioTimeMs = 0] = columns.map(Number);
      const [size, model] = await Promise.all(
        ["size", "device/model"].map((name) => readFile(`/sys/block/${device}/${name}`, "utf8").catch(() => "")),
      );
      return {
        device,
        model: model?.trim() ?? "",
        limit: Number(size) * sectorBytes,
        readBytes: readSectors * sectorBytes,
        writtenBytes: writtenSectors * sectorBytes,
        reads,
        writes,
        ioTimeSec: ioTimeMs / 1000,
      };
    }),
  );
}

async function readInterfaces(): Promise<NetworkInterface[]> {
  const text = await readFile("/proc/net/dev", "utf8").catch(() => "");
  const inUse = new Map(interfacesInUse());
  return [...text.matchAll(/^\s*(\S+):\s*(.+)$/gm)].flatMap(([, device = "", columns = ""]) => {
    const addresses = inUse.get(device);
    // The ends of containers' and virtual machines' cables come and go with them.
    if (addresses === undefined || /^(veth|cali|tap|vnet)/.test(device)) return [];
    const [receivedBytes = 0, received = 0, receiveErrors = 0, receiveDropped = 0, , , , , ...transmit] = columns
      .split(/\s+/)
      .map(Number);
    const [transmittedBytes = 0, transmitted = 0, transmitErrors = 0, transmitDropped = 0] = transmit;
    return [
      {
        device,
        addresses,
        counters: {
          receivedBytes,
          transmittedBytes,
          packets: received + transmitted,
          errors: receiveErrors + transmitErrors,
          dropped: receiveDropped + transmitDropped,
        },
      },
    ];
  });
}

/** Always full by their nature. */
const images = new Set(["squashfs", "iso9660", "udf", "erofs"]);

async function readFilesystems(): Promise<Filesystem[]> {
  const text = await readFile("/proc/self/mountinfo", "utf8");
  const found = new Map<string, Pick<Filesystem, "mountpoint" | "type" | "device">>();
  for (const line of text.split("\n")) {
    const [, , number = "", , mountpoint = "", ...rest] = line.split(" ");
    const [type = "", device = ""] = rest.slice(rest.indexOf("-") + 1);
    // Local ones only: to ask one that lies on a server which is away would take for ever. In a container the root is an overlay.
    const local = device.startsWith("/dev/") || type === "zfs" || mountpoint === "/";
    if (!local || images.has(type)) continue;
    const path = mountpoint.replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)));
    const known = found.get(number);
    // Mounted in several places it is still one.
    if (known === undefined || path.length < known.mountpoint.length)
      found.set(number, { mountpoint: path, type, device });
  }
  const folders = [...found.values()].filter(({ mountpoint }) =>
    statSync(mountpoint, { throwIfNoEntry: false })?.isDirectory(),
  );
  const read = await Promise.allSettled(folders.map(readFilesystem));
  return read.flatMap((outcome) => (outcome.status === "fulfilled" && outcome.value.limit > 0 ? [outcome.value] : []));
}
