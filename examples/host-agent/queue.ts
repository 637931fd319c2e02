import {
  closeSync,
  fdatasyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";

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
export const frameBytes = (record: Uint8Array) => headBytes + record.length;

/**
 * Opens the queue of this name in a folder. Its files have up to `segmentBytes` and are removed whole when all of them is
 * sent: after a crash some records are sent again, which changes nothing, and none is lost. What a crash has left unfinished at
 * the end of a file is skipped.
 */
export function openQueue(folder: string, name: string, segmentBytes: number): Queue {
  const pattern = new RegExp(`^${name}-(\\d+)\\.log$`);
  const numbers = readdirSync(folder)
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

  function tailFor(bytes: number) {
    if (tail !== undefined && tail.segment.bytes + bytes <= segmentBytes) return tail;
    if (tail !== undefined) closeSync(tail.fd);
    const segment = segmentOf(next++);
    segments.push(segment);
    tail = { segment, fd: openSync(segment.file, "a", 0o600) };
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

function readRecords({ file }: Segment, from: number, bytesMax: number) {
  const bytes = readFileSync(file);
  const records: Uint8Array[] = [];
  let items = 0;
  let at = from;
  while (at + headBytes <= bytes.length && at - from < bytesMax) {
    const record = bytes.subarray(at + headBytes, at + headBytes + bytes.readUInt32BE(at));
    if (record.length !== bytes.readUInt32BE(at) || crc32(record) !== bytes.readUInt32BE(at + 4)) break;
    records.push(record);
    items += bytes.readUInt32BE(at + 8);
    at += frameBytes(record);
  }
  return { records, items, endBytes: at };
}
