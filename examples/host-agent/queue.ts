import {
  closeSync,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { isOwnFile, makeOwn, openOwn } from "./own-files.ts";

/** Records that lie in files until they are sent, oldest first. */
export interface Queue {
  /** Bytes of its files. */
  bytes(): number;
  /**
   * Adds a record of so many items. `durable`: it is on the disk, not only with the operating system, when this returns.
   * @throws Error when the disk is full; nothing is added then
   */
  append(record: Uint8Array, items: number, durable?: boolean): void;
  /** The oldest records, of about so many bytes, end to end; undefined when there is none. */
  oldest(bytesMax: number): Batch | undefined;
  /** Forgets the oldest file and answers how many items were lost with it; undefined when there is none. */
  dropOldest(): number | undefined;
}

export interface Batch {
  /** The bytes of the records, and how many these are. */
  bytes: Uint8Array;
  records: number;
  items: number;
  /** They need not be kept any longer. */
  done(): void;
}

interface Segment {
  file: string;
  bytes: number;
}

// A record begins with its length, its checksum and the number of its items, four bytes each.
const headBytes = 12;
/** No record of ours is larger; what says so is damaged. */
const recordBytesMax = 64 * 1024 * 1024;
export const frameBytes = (record: Uint8Array) => headBytes + record.length;

/**
 * Opens the queue of this name in a folder. Its files have up to `segmentBytes` and are removed whole when all of them is
 * sent: after a crash some records are sent again, which changes nothing, and none is lost. What a crash has left unfinished at
 * the end of a file is skipped, and so is the rest of a file after bytes that are no record: `damaged` gets their number.
 */
export function openQueue(
  folder: string,
  name: string,
  segmentBytes: number,
  damaged: (bytes: number) => void = () => undefined,
): Queue {
  const pattern = new RegExp(`^${name}-(\\d{1,15})\\.log$`);
  // What is no plain file of this account, such as a link, is left alone.
  const numbers = readdirSync(folder)
    .filter((entry) => isOwnFile(join(folder, entry)))
    .flatMap((entry) => pattern.exec(entry)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
  const segments: Segment[] = numbers.map((number) => segmentOf(number));
  let next = (numbers.at(-1) ?? 0) + 1;
  /** The file that is appended to: always the last one. */
  let tail: { segment: Segment; fd: number } | undefined;
  /** How far the first file is sent. */
  let sentBytes = 0;

  function segmentOf(number: number): Segment {
    const file = join(folder, `${name}-${number}.log`);
    return { file, bytes: statSync(file, { throwIfNoEntry: false })?.size ?? 0 };
  }

  function removeFirst() {
    const first = segments.shift();
    if (first === undefined) return;
    if (tail?.segment === first) {
      closeSync(tail.fd);
      tail = undefined;
    }
    rmSync(first.file, { force: true });
    sentBytes = 0;
  }

  /** A new file: its name may be taken by what is not ours. */
  function makeSegment(): { segment: Segment; fd: number } {
    for (;;) {
      const file = join(folder, `${name}-${next++}.log`);
      try {
        return { segment: { file, bytes: 0 }, fd: makeOwn(file) };
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      }
    }
  }

  function tailFor(bytes: number) {
    if (tail !== undefined && tail.segment.bytes + bytes <= segmentBytes) return tail;
    if (tail !== undefined) closeSync(tail.fd);
    tail = undefined;
    tail = makeSegment();
    segments.push(tail.segment);
    return tail;
  }

  return {
    bytes: () => segments.reduce((sum, { bytes }) => sum + bytes, 0),
    append(record, items, durable = false) {
      const frame = Buffer.alloc(frameBytes(record));
      frame.writeUInt32BE(record.length, 0);
      frame.writeUInt32BE(crc32(record), 4);
      frame.writeUInt32BE(items, 8);
      frame.set(record, headBytes);
      const { segment, fd } = tailFor(frame.length);
      let written = 0;
      try {
        written = writeSync(fd, frame);
      } finally {
        // On a full disk: half a record would hide those that come after it.
        if (written < frame.length) ftruncateSync(fd, segment.bytes);
      }
      if (written < frame.length) throw new Error("the disk of the buffer is full");
      segment.bytes += written;
      if (durable) fdatasyncSync(fd);
    },
    oldest(bytesMax) {
      for (let first = segments[0]; first !== undefined; first = segments[0]) {
        const from = sentBytes;
        const { records, items, endBytes } = readRecords(first, from, bytesMax);
        if (records.length > 0) {
          const done = () => {
            if (segments[0] !== first) return; // it was dropped meanwhile
            sentBytes = endBytes;
            if (sentBytes >= first.bytes) removeFirst();
          };
          return { bytes: Buffer.concat(records), records: records.length, items, done };
        }
        if (endBytes < first.bytes) damaged(first.bytes - endBytes);
        removeFirst();
      }
      return undefined;
    },
    dropOldest() {
      const first = segments[0];
      if (first === undefined) return undefined;
      const { items } = readRecords(first, sentBytes, Number.POSITIVE_INFINITY);
      removeFirst();
      return items;
    },
  };
}

/** Fills the bytes from a place of the file; false where it ends before. */
function readAt(fd: number, bytes: Uint8Array, at: number): boolean {
  let read = 0;
  while (read < bytes.length) {
    const count = readSync(fd, bytes, read, bytes.length - read, at + read);
    if (count === 0) return false;
    read += count;
  }
  return true;
}

/** Reads record by record: a file that something else has written to may have any size. */
function readRecords({ file }: Segment, from: number, bytesMax: number) {
  const records: Uint8Array[] = [];
  let items = 0;
  let at = from;
  let fd: number | undefined;
  try {
    fd = openOwn(file);
    const { size } = fstatSync(fd);
    const head = Buffer.alloc(headBytes);
    while (at - from < bytesMax && readAt(fd, head, at)) {
      const length = head.readUInt32BE(0);
      if (length > recordBytesMax || at + headBytes + length > size) break;
      const record = Buffer.alloc(length);
      if (!readAt(fd, record, at + headBytes) || crc32(record) !== head.readUInt32BE(4)) break;
      // Zeros, which a file system may leave where a machine has lost its power, are no record.
      if (length === 0) break;
      records.push(record);
      items += head.readUInt32BE(8);
      at += frameBytes(record);
    }
  } catch (error) {
    // One that is gone, or something else, has nothing to send. What fails for another reason is tried again.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== undefined && code !== "ENOENT" && code !== "ELOOP") throw error;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
  return { records, items, endBytes: at };
}
