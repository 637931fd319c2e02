// Plain JavaScript, as start.js is, which reads it on a Node that strips no types.
import { randomBytes } from "node:crypto";
import { openSync, readSync, unlinkSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/*
 * A process notes each request that it begins in a file that outlives it: a line of fixed length in a ring of lines, overwritten in place, some
 * microseconds a request. Whoever has started the process reads them when it dies. The file has no name, and lies in memory where the system
 * has a place for that: a write to a disk may wait for the disk.
 */

const lineBytes = 160;
const linesMax = 64;
const textMax = lineBytes - 16;
const shownMax = 8;
/** For so long a request whose client has left may still be at work. */
const leftMs = 60_000;
const [inWork, left, over] = ["*", "~", " "];

/** Tells a process where it has the file. */
export const inWorkFd = 4;
export const inWorkMark = { REQUESTS_IN_WORK: String(inWorkFd) };

/** Opens the file; returns its descriptor, or undefined where no file can be made. */
export function openRequestsInWork() {
  for (const dir of ["/dev/shm", tmpdir()]) {
    const path = join(dir, `belfry-${randomBytes(12).toString("hex")}`);
    try {
      const fd = openSync(path, "wx+", 0o600);
      unlinkSync(path);
      return fd;
    } catch {
      // The next place may do.
    }
  }
  return undefined;
}

/** @param {number} process */
const placeOf = (process) => process * linesMax * lineBytes;

/**
 * Notes the requests of a process, under its number where there are several, in the file that it was started with; does nothing without one.
 * @param {number} process
 */
export function noteRequests(process = 0) {
  const fd = globalThis.process.env.REQUESTS_IN_WORK === inWorkMark.REQUESTS_IN_WORK ? inWorkFd : undefined;
  /** @type {unknown[]} */
  const holders = new Array(linesMax).fill(undefined);
  const line = Buffer.alloc(lineBytes);
  const place = placeOf(process);
  let next = 0;
  let broken = fd === undefined;

  /** @param {number} length @param {number} slot */
  function write(length, slot) {
    try {
      writeSync(/** @type {number} */ (fd), line, 0, length, place + slot * lineBytes);
    } catch {
      broken = true; // no request fails for it
    }
  }

  return {
    /**
     * Notes a request that begins. Where more are in work than there are lines, the oldest is forgotten.
     * @param {object} request
     * @param {string} text a name and who calls: no body, no secret
     */
    began(request, text) {
      if (broken) return;
      holders[next] = request;
      line.fill(32);
      line.write(`${inWork}${Date.now()} ${text.slice(0, textMax).replaceAll(/[^ -~]/g, "?")}`, "latin1");
      line[lineBytes - 1] = 10;
      write(lineBytes, next);
      next = (next + 1) % linesMax;
    },
    /**
     * Notes that a request is over. One that its client gave up may still be at work.
     * @param {object} request
     * @param {boolean} givenUp
     */
    ended(request, givenUp) {
      if (broken) return;
      const slot = holders.indexOf(request);
      if (slot === -1) return;
      holders[slot] = undefined;
      line.write(givenUp ? left : over, "latin1");
      write(1, slot);
    },
  };
}

/**
 * Returns what a process that has died had in work, the latest first, and forgets it.
 * @param {number | undefined} fd
 * @param {number} process
 * @param {number} nowMs
 * @returns {string[]}
 */
export function takeRequestsInWork(fd, process, nowMs) {
  if (fd === undefined) return [];
  const lines = Buffer.alloc(linesMax * lineBytes);
  try {
    const length = readSync(fd, lines, 0, lines.length, placeOf(process));
    writeSync(fd, Buffer.alloc(lines.length, 10), 0, lines.length, placeOf(process));
    return lines
      .toString("latin1", 0, length)
      .split("\n")
      .map((line) => ({ state: line[0], beganMs: Number(line.slice(1, 14)), text: line.slice(15).trimEnd() }))
      .filter(({ state, beganMs }) => state === inWork || (state === left && nowMs - beganMs < leftMs))
      .sort((one, other) => other.beganMs - one.beganMs)
      .slice(0, shownMax)
      .map(({ beganMs, text }) => `${text}, for ${((nowMs - beganMs) / 1000).toFixed(1)} s`);
  } catch {
    return [];
  }
}
