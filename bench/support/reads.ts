import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Sql } from "../../src/db/connect.ts";

/** A read of the API beside the statement that it needs. */
export interface ReadCase {
  name: string;
  method: DescMethod;
  /** The request's message, as an object. */
  request: Record<string, unknown>;
  /** The same rows by the same statement, written out, and nothing done with them; answers them, for a look at their number. */
  statement(): PromiseLike<readonly object[]>;
  rows: number;
}

/** Reads of one part of the API, on rows that it has made for one tenant. */
export type Reads = (
  sql: Sql,
  tenantId: string,
) => Promise<{
  services: { service: DescService; implementation: Partial<ServiceImpl<DescService>> }[];
  cases: ReadCase[];
}>;
