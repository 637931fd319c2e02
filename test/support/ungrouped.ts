/** A key and a text that a browser stores once a person has chosen to see events as a list: most tests read its rows. */
export const ungrouped = ["belfry.grouping", ""] as const;
