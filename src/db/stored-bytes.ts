import type { Fragment } from "postgres";
import type { Db } from "./connect.ts";

/**
 * The bytes that values take when they are read, together. The size of what is stored uncompressed is known without reading it; what is
 * stored compressed is unpacked for it.
 */
export function storedBytes(db: Db, values: readonly Fragment[]): Fragment {
  const sizes = values.map(
    (value) => db`case when pg_column_compression(${value}) is null then coalesce(pg_column_size(${value}), 0)
      else octet_length(${value}::text) end`,
  );
  return sizes.reduce((left, right) => db`${left} + ${right}`);
}
