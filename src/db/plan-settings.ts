/*
 * Few statements, each over and over: planned once. Their batches name rows by whole keys, so what joins whole tables or sorts
 * them is never right, however small a table was when its plan was made (design/statements).
 */
const plannedOnce = {
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  enable_sort: "off",
  enable_incremental_sort: "off",
};

/** How long connections that do not plan once keep a plan, ms: it may be of tables that were small when it was made. */
export const usualReplanMs = 10_000;

/**
 * Settings of a connection by which PostgreSQL plans. One that plans once plans without values, but where tables lie distributed
 * over nodes: there the values say to which node a statement over several tables goes (design/citus).
 */
export function planSettings(planned: "once" | undefined, distributed = false) {
  return {
    // All that is read is of one tenant, which an index finds. A scan of a table that was empty when it was planned costs nothing.
    enable_seqscan: "off",
    ...(planned === "once" && plannedOnce),
    ...(planned === "once" && !distributed && { plan_cache_mode: "force_generic_plan" }),
  };
}
