import type { MessageInitShape } from "@bufbuild/protobuf";
import type { MetricSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import { type Dimensions, diskOf, filesystemOf, hostOf, interfaceOf } from "./entities.ts";
import type { Reading } from "./reading.ts";

type Point = MessageInitShape<typeof MetricSchema>;

/**
 * The metric points of a reading, under the names of OpenTelemetry's semantic conventions. Counters are sent as they stand,
 * counting since the machine was started: the aggregators RATE and DELTA make rates of them, over gaps and restarts too.
 * A series here has a name and an entity, and no further attributes: the plain name is the sum over an attribute that
 * OpenTelemetry would add (of memory and space: what is used), and some of its values have a series of their own, named after them.
 */
export function pointsOf(source: string, now: Reading, before: Reading | undefined): Point[] {
  const timestamp = BigInt(now.timeMs);
  const of = (dimensions: Dimensions, values: Record<string, number | undefined>): Point[] =>
    Object.entries(values).flatMap(([metric, value]) =>
      value === undefined || !Number.isFinite(value) ? [] : [{ metric, timestamp, value, dimensions }],
    );
  const { cpu, load, memory, swap } = now;
  const used = memory.limit - memory.available;
  return [
    ...of(hostOf(source), {
      "system.uptime": now.uptimeSec,
      "system.cpu.logical.count": cpu.count,
      ...utilization(cpu.timeSec, before?.cpu.timeSec),
      // Of the host metrics of OpenTelemetry's Collector; the conventions have no name for it.
      "system.cpu.load_average.1m": load?.[0],
      "system.cpu.load_average.5m": load?.[1],
      "system.cpu.load_average.15m": load?.[2],
      "system.memory.limit": memory.limit,
      "system.memory.usage": used,
      "system.memory.utilization": used / memory.limit,
      "system.paging.usage": swap?.used,
      "system.paging.utilization": swap && swap.used / swap.limit,
    }),
    ...now.disks.flatMap((disk) =>
      of(diskOf(source, disk), {
        "system.disk.limit": disk.limit,
        "system.disk.io": disk.readBytes + disk.writtenBytes,
        "system.disk.io.read": disk.readBytes,
        "system.disk.io.write": disk.writtenBytes,
        "system.disk.operations": disk.reads + disk.writes,
        "system.disk.operations.read": disk.reads,
        "system.disk.operations.write": disk.writes,
        "system.disk.io_time": disk.ioTimeSec,
      }),
    ),
    ...now.interfaces.flatMap((card) =>
      card.counters === undefined
        ? []
        : of(interfaceOf(source, card), {
            "system.network.io": card.counters.receivedBytes + card.counters.transmittedBytes,
            "system.network.io.receive": card.counters.receivedBytes,
            "system.network.io.transmit": card.counters.transmittedBytes,
            "system.network.packet.count": card.counters.packets,
            "system.network.packet.dropped": card.counters.dropped,
            "system.network.errors": card.counters.errors,
          }),
    ),
    ...now.filesystems.flatMap((files) =>
      of(filesystemOf(source, files), {
        "system.filesystem.limit": files.limit,
        "system.filesystem.usage": files.used,
        "system.filesystem.utilization": files.utilization,
      }),
    ),
  ];
}

/** Modes of the processor that have a series of their own. */
const shown = ["user", "system", "iowait", "steal"];

/** Shares of processor time between two readings: all that was not idle, and some modes. */
function utilization(now: Record<string, number>, before: Record<string, number> | undefined): Record<string, number> {
  if (before === undefined) return {};
  const spent = (mode: string) => Math.max(0, (now[mode] ?? 0) - (before[mode] ?? 0));
  const total = Object.keys(now).reduce((sum, mode) => sum + spent(mode), 0);
  if (total === 0) return {};
  const idle = spent("idle") + spent("iowait");
  const byMode = shown
    .filter((mode) => mode in now)
    .map((mode) => [`system.cpu.utilization.${mode}`, spent(mode) / total]);
  return { "system.cpu.utilization": 1 - idle / total, ...Object.fromEntries(byMode) };
}
