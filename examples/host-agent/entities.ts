import { readFileSync } from "node:fs";
import { arch, cpus, hostname, platform, release, type } from "node:os";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ModelSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import type { Disk, Filesystem, NetworkInterface, Reading } from "./reading.ts";

type Model = MessageInitShape<typeof ModelSchema>;
export type Dimensions = Record<string, string>;

/** The dimensions of each thing: they identify its entity, and points and events are sent with the same ones. */
export const hostOf = (source: string): Dimensions => ({ source, "source-type": "host" });
export const diskOf = (source: string, { device }: Pick<Disk, "device">): Dimensions => ({
  source,
  "source-type": "disk",
  device,
});
export const interfaceOf = (source: string, { device }: Pick<NetworkInterface, "device">): Dimensions => ({
  source,
  "source-type": "network-interface",
  device,
});
export const filesystemOf = (source: string, { mountpoint }: Pick<Filesystem, "mountpoint">): Dimensions => ({
  source,
  "source-type": "filesystem",
  mountpoint,
});

/** OpenTelemetry's words for what Node.js calls otherwise. */
const arches: Record<string, string> = { x64: "amd64", ia32: "x86", arm: "arm32" };
const systems: Record<string, string> = { win32: "windows", sunos: "solaris" };

/** The machine, its disks, network interfaces and file systems, as models to send. Each part names the machine as its parent. */
export function describe(source: string, { timeMs, cpu, memory, disks, interfaces, filesystems }: Reading): Model[] {
  const timestamp = BigInt(timeMs);
  const parent = Object.entries(hostOf(source))
    .map(([key, value]) => `${key}=${value}`)
    .join(",");
  const part = (dimensions: Dimensions, name: string, metadata: Record<string, string | number | string[]>): Model => ({
    timestamp,
    dimensions,
    metadataFields: { name: `${name} of ${source}`, type: dimensions["source-type"] ?? "", parent, ...metadata },
  });
  const host: Model = {
    timestamp,
    dimensions: hostOf(source),
    metadataFields: {
      name: source,
      type: "host",
      "host.name": hostname(),
      "host.arch": arches[arch()] ?? arch(),
      "host.cpu.model.name": cpus()[0]?.model ?? "",
      "host.ip": interfaces.flatMap(({ addresses }) => addresses),
      "os.type": systems[platform()] ?? platform(),
      "os.description": description(),
      "os.version": release(),
      cpus: cpu.count,
      memoryBytes: memory.limit,
    },
  };
  return [
    host,
    ...disks.map((disk) => part(diskOf(source, disk), disk.device, { model: disk.model, sizeBytes: disk.limit })),
    ...interfaces.map((card) => part(interfaceOf(source, card), card.device, { addresses: [...card.addresses] })),
    ...filesystems.map((files) =>
      part(filesystemOf(source, files), files.mountpoint, {
        device: files.device,
        "system.filesystem.type": files.type,
        sizeBytes: files.limit,
      }),
    ),
  ];
}

function description(): string {
  try {
    return /^PRETTY_NAME="?([^"\n]+)/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? type();
  } catch {
    return `${type()} ${release()}`;
  }
}
