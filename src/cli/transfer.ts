import type { CopyProgress } from "../backup/copying.ts";
import type { Copied } from "../backup/dump-format.ts";
import { exportTo } from "../backup/export.ts";
import { importFrom } from "../backup/import.ts";
import type { Config } from "../config/settings.ts";
import { keyring } from "../credentials/keyring.ts";
import { checkStoredMasterKeys } from "../credentials/master-keys.ts";
import type { Db } from "../db/connect.ts";
import { version } from "../version.ts";

/** How the commands of this file are called. */
export const transferUsage = [
  ["export <file>", "write all data into a new file, as of one moment, while servers go on"],
  ["import <file>", "fill an empty database from such a file"],
] as const;

function summary({ rows, takenAt }: Copied): string {
  const tables = Object.values(rows);
  const count = tables.reduce((sum, each) => sum + each, 0);
  return `${count} rows of ${tables.length} tables, as of ${takenAt}`;
}

/** How often the line of progress changes, ms. */
const progressMs = 200;
const clearLine = "\r\x1b[K";

/** Shows on a terminal how far a copy is, in one line that changes in place; elsewhere nothing. */
export function progressLine(stream: { isTTY?: boolean; write(text: string): unknown }) {
  let rows = 0;
  let shownMs = 0;
  return {
    note({ rows: more, table, number, of }: CopyProgress) {
      rows += more;
      const nowMs = performance.now();
      if (!stream.isTTY || nowMs - shownMs < progressMs) return;
      shownMs = nowMs;
      const place = of === undefined ? `${number}` : `${number} of ${of}`;
      stream.write(`${clearLine}${rows.toLocaleString("en")} rows; table ${place}, ${table}`);
    },
    end() {
      if (shownMs > 0) stream.write(clearLine);
    },
  };
}

/**
 * What a command line about all data asks for: the work on the database of a URL, which returns what to print and stops when its signal aborts.
 * Undefined when it is none.
 */
export function transferCommand(
  args: readonly string[],
  config: Config,
): ((url: string, signal?: AbortSignal) => Promise<string>) | undefined {
  const [command, file, ...rest] = args;
  if (file === undefined || rest.length > 0) return undefined;
  const progress = progressLine(process.stderr);
  const onProgress = progress.note;
  async function summarised(what: string, copied: Promise<Copied>) {
    try {
      return `${what} holds ${summary(await copied)}\n`;
    } finally {
      progress.end();
    }
  }
  if (command === "export") {
    return (url, signal) => summarised(file, exportTo(url, file, version, { signal, onProgress }));
  }
  if (command !== "import") return undefined;
  // Secrets that this server could not read are refused before they are stored.
  async function filled(tx: Db, table: string) {
    if (table === "master_keys") await checkStoredMasterKeys(tx, keyring(config));
  }
  return (url, signal) => summarised("the database", importFrom(url, file, version, filled, { signal, onProgress }));
}
