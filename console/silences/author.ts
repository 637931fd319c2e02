/** Names who made a silence: the client or person, and what was sent as `createdBy`, where anybody may write any name. */
export const authorText = (author: string, createdBy: string) =>
  createdBy === "" || createdBy === author ? author : `${author} (as “${createdBy}”)`;
