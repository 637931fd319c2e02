import { constants, fstatSync, openSync, write, writeSync } from "node:fs";

/** Where log lines go: it never keeps its caller waiting. */
export interface LogWriter {
  /** Takes a line, which ends with its newline. */
  write(line: string): void;
  /** Calls back once all is written, or after `flushMsMax`. */
  flush(done?: () => void): void;
  /** Lines that found no room since the start. */
  readonly lost: number;
}

interface Options {
  /** How much waits at most, in characters: further lines are lost. */
  waitingMax?: number;
  flushMsMax?: number;
  /** Other processes write to the descriptor, too: pieces are such that no line of theirs gets into one of ours. */
  shared?: boolean;
}

/** What a pipe takes at once, with nothing of another process in between (PIPE_BUF of Linux). */
const atomicBytes = 4096;

/** Takes as many lines, from the first on, as fit into a piece; at least one. */
function takePiece(lines: string[], bytesMax: number): string {
  let bytes = 0;
  const count = lines.findIndex((line) => {
    bytes += Buffer.byteLength(line);
    return bytes > bytesMax;
  });
  return lines.splice(0, count < 0 ? lines.length : Math.max(1, count)).join("");
}

const gatherMs = 100;
const pieceSize = 65_536;
const [pauseMsMin, pauseMsMax] = [50, 2000];

function statsOf(fd: number) {
  try {
    return fstatSync(fd);
  } catch {
    return undefined; // it is closed
  }
}

/** Writes a piece and calls back how many of its bytes were taken. */
type Write = (piece: Buffer, written: (error: Error | null, bytes: number) => void) => void;

/**
 * How to write to a descriptor without a thread that waits for a reader who does not read: that would keep the process from ending. Of a pipe or
 * a terminal it is a second descriptor that does not block; the mode of the first one, which other processes have as well, is not ours to change.
 * Of a socket there can be no second one.
 */
function writeTo(fd: number): { write: Write; own: number | undefined } {
  const stats = statsOf(fd);
  if (fd === process.stdout.fd && stats?.isSocket()) {
    const { stdout } = process;
    return {
      write: (piece, written) => void stdout.write(piece, (e) => written(e ?? null, piece.length)),
      own: undefined,
    };
  }
  let own = fd;
  if (stats?.isFIFO() || stats?.isCharacterDevice()) {
    try {
      own = openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    } catch {} // a system without /proc, or another account's pipe
  }
  const atExit = own !== fd || stats?.isFile() ? own : undefined;
  return { write: (piece, written) => write(own, piece, written), own: atExit };
}

const lostLine = (lost: number) =>
  `${JSON.stringify({ level: 40, time: Date.now(), lost, msg: "log lines were lost while none could be written" })}\n`;

/**
 * Writes lines to a descriptor, in pieces of up to 100 ms. While that takes none, because its disk is full or its reader has stopped, they wait within
 * a bound; those beyond it are counted, and one line says how many when it takes them again.
 */
export function logWriter(fd: number, options: Options = {}): LogWriter {
  const { waitingMax = 4 * 1024 * 1024, flushMsMax = 1000, shared = false } = options;
  const pieceBytes = shared ? atomicBytes : Number.POSITIVE_INFINITY;
  const { write: writePiece, own } = writeTo(fd);
  const lines: string[] = [];
  let size = 0;
  /** What is being written. */
  let piece: Buffer | undefined;
  let timer: NodeJS.Timeout | undefined;
  let pauseMs = pauseMsMin;
  let lost = 0;
  let unreported = 0;
  const flushing = new Set<() => void>();

  function add(line: string) {
    lines.push(line);
    size += line.length;
  }

  function later(ms: number) {
    timer ??= setTimeout(next, ms).unref();
  }

  function next() {
    clearTimeout(timer);
    timer = undefined;
    if (piece === undefined && lines.length > 0) {
      const taken = takePiece(lines, pieceBytes);
      [piece, size] = [Buffer.from(taken), size - taken.length];
    }
    if (piece !== undefined) return writePiece(piece, written);
    for (const done of flushing) done();
    flushing.clear();
  }

  function written(error: Error | null, bytes: number) {
    if (error !== null) {
      later(pauseMs);
      pauseMs = Math.min(pauseMs * 2, pauseMsMax);
      return;
    }
    pauseMs = pauseMsMin;
    piece = piece !== undefined && bytes < piece.length ? piece.subarray(bytes) : undefined;
    if (piece === undefined && unreported > 0) {
      add(lostLine(unreported));
      unreported = 0;
    }
    if (piece !== undefined || size >= pieceSize || flushing.size > 0 || (shared && lines.length > 0)) next();
    else if (lines.length > 0) later(gatherMs);
  }

  process.once("exit", () => writeLast(own, lines, pieceBytes));

  return {
    write(line) {
      if (size + line.length > waitingMax) {
        lost += 1;
        unreported += 1;
        return;
      }
      add(line);
      if (piece !== undefined) return;
      if (size >= pieceSize && timer !== undefined) next();
      else later(gatherMs);
    },
    flush(done = () => undefined) {
      const late = setTimeout(end, flushMsMax);
      function end() {
        clearTimeout(late);
        flushing.delete(end);
        done();
      }
      flushing.add(end);
      if (piece === undefined) next();
    },
    get lost() {
      return lost;
    },
  };
}

/** Not to a descriptor that may block, and once only: what it does not take now is lost. */
function writeLast(fd: number | undefined, lines: string[], pieceBytes: number) {
  try {
    while (lines.length > 0 && fd !== undefined) writeSync(fd, takePiece(lines, pieceBytes));
  } catch {}
}
