import { partitionName } from "../db/partitions.ts";
import { StartError } from "../db/start-error.ts";
import { printable } from "./copying.ts";
import {
  type Closing,
  damaged,
  exportForm,
  formVersion,
  type Header,
  type Partition,
  type TableHead,
} from "./dump-format.ts";

/*
 * What a file says of itself is text of elsewhere: every part of it is checked before it is used in a statement or shown.
 */

const partitionsMax = 100_000;
const partitionMsMax = 366 * 86_400_000;

function parse(text: string | undefined, what: string): Record<string, unknown> {
  if (text === undefined) throw damaged(`${what} is missing`);
  try {
    const value = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value;
  } catch {}
  throw damaged(`${what} cannot be read`);
}

const isMigration = (value: unknown): value is { name: string; digest: string } => {
  const { name, digest } = (value ?? {}) as Record<string, unknown>;
  return typeof name === "string" && typeof digest === "string";
};

/** The first line. @throws StartError when this version cannot import the file */
export function readHeader(
  text: string | undefined,
  version: string,
  known: readonly { name: string; digest: string }[],
): Header {
  const header = parse(text, "its first line");
  if (header.form !== exportForm) throw damaged("its first line is that of another form");
  const written = printable(header.version);
  if (header.formVersion !== formVersion) {
    throw new StartError(
      `the file has version ${printable(header.formVersion)} of the form of exports, and Belfry ${version} reads version ${formVersion}: import it with Belfry ${written}; nothing was imported`,
    );
  }
  const { migrations, takenAt } = header;
  const sound = Array.isArray(migrations) && migrations.every(isMigration) && typeof takenAt === "string";
  if (!sound || !/^\d{4}-[\d-]{5}T[\d:.]{8,12}Z$/.test(takenAt)) throw damaged("its first line cannot be read");
  const begun = migrations.every(({ name, digest }, i) => name === known[i]?.name && digest === known[i]?.digest);
  if (!begun) {
    throw new StartError(
      `the file has the schema of Belfry ${written}, which Belfry ${version} does not know: import it with Belfry ${written} or a newer one; nothing was imported`,
    );
  }
  return { form: exportForm, formVersion, version: written, migrations, takenAt };
}

/** Whether a partition is one that a server makes: by its name, its width, and where it begins. */
function isOwn(table: string, value: unknown): value is Partition {
  const { name, fromMs, toMs } = (value ?? {}) as Partition;
  if (!Number.isSafeInteger(fromMs) || !Number.isSafeInteger(toMs)) return false;
  const widthMs = toMs - fromMs;
  if (!(widthMs > 0 && widthMs <= partitionMsMax) || fromMs % widthMs !== 0) return false;
  return Math.abs(fromMs) < 8.64e15 && name === partitionName({ table, widthMs }, fromMs);
}

/** The line before the rows of a table, or the last line. @throws StartError when the schema has no such table */
export function readHead(text: string | undefined, known: ReadonlyMap<string, TableHead>): TableHead | Closing {
  const next = parse(text, "its end");
  if (!("table" in next)) return next as unknown as Closing;
  const { table, columns, partitions } = next;
  const own = known.get(table as string);
  if (own === undefined || JSON.stringify(columns) !== JSON.stringify(own.columns)) {
    throw damaged(`it has a table ${printable(table)} that the schema has not`);
  }
  if (partitions === undefined) return own.partitions === undefined ? own : { ...own, partitions: [] };
  const sound =
    own.partitions !== undefined &&
    Array.isArray(partitions) &&
    partitions.length <= partitionsMax &&
    partitions.every((each) => isOwn(own.table, each));
  if (!sound) throw damaged(`its table ${own.table} has partitions that no server makes`);
  return { ...own, partitions };
}
