import { totalmem } from "node:os";

const MiB = 1024 * 1024;
const [leastMiB, mostMiB] = [256, 1024];
/** The rest is for what V8 does not count (bodies, answers, sockets), and for the embedded PostgreSQL. */
const heapShare = 0.4;

/** Memory that the machine, or the cgroup of this process, grants, bytes. */
export function grantedMemory(): number {
  return Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
}

/**
 * Returns the argument of Node that bounds the heap of each of `processes`: one that runs away dies in seconds, where V8's own bound of up to
 * 4 GiB has a server stand still for long, or the kernel end PostgreSQL first. `granted`: bytes.
 */
export function heapLimit(granted: number, processes: number): string {
  const share = Math.floor((granted * heapShare) / MiB / processes);
  return `--max-old-space-size=${Math.min(Math.max(share, leastMiB), mostMiB)}`;
}

/** Returns whether arguments of Node, as one text, bound its heap. */
export const isHeapLimit = (args: string): boolean => /--max[-_]old[-_]space[-_]size/.test(args);
