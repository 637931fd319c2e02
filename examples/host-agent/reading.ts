/** What the machine said at one moment. Counters count since the machine was started; sizes are bytes, times seconds. */
export interface Reading {
  timeMs: number;
  uptimeSec: number;
  cpu: {
    /** Logical processors. */
    count: number;
    /** Processor time by what it was spent on: user, system, idle … */
    timeSec: Record<string, number>;
  };
  /** Mean number of processes that run or want to, over 1, 5 and 15 minutes; absent on Windows. */
  load?: readonly [number, number, number];
  memory: { limit: number; available: number };
  swap?: { limit: number; used: number };
  disks: readonly Disk[];
  interfaces: readonly NetworkInterface[];
  filesystems: readonly Filesystem[];
}

export interface Disk {
  /** As the operating system calls it: `sda`, `nvme0n1`. */
  device: string;
  model: string;
  limit: number;
  readBytes: number;
  writtenBytes: number;
  reads: number;
  writes: number;
  /** Time during which it was busy. */
  ioTimeSec: number;
}

export interface NetworkInterface {
  /** As the operating system calls it: `eth0`. */
  device: string;
  addresses: readonly string[];
  /** Absent where the operating system does not tell by a file. */
  counters?: {
    receivedBytes: number;
    transmittedBytes: number;
    packets: number;
    errors: number;
    dropped: number;
  };
}

export interface Filesystem {
  mountpoint: string;
  /** `ext4`, `xfs`. */
  type: string;
  /** Where it lies: `/dev/sda1`. */
  device: string;
  limit: number;
  used: number;
  /** Of what ordinary users may fill, the share that is used; `df` shows the same. */
  utilization: number;
}
