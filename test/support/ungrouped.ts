/** The storage entry of a browser whose user chose *No groups*: most tests read the rows of the list. */
export const ungrouped = ["belfry.grouping", ""] as const;
