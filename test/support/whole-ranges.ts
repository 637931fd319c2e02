/** Statements that ask for a whole range of a tenant's rows, and why they may read it. */
export const wholeRanges: readonly { begin: string; why: string }[] = [];
