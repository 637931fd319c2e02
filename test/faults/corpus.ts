/** Requests that were once answered wrongly, as a failing fuzz test prints them. */
export const corpus: readonly { path: string; contentType: string; base64: string }[] = [
  // NUL in a value that is looked for.
  {
    path: "/belfry.entities.v1.EntityService/SearchEntities",
    contentType: "application/proto",
    base64: "ChMKEQoPIg0KBG5hbWUQARoDGgEA",
  },
  // A key of a map without its opening quote.
  {
    path: "/v1/data-receiver/models",
    contentType: "application/json",
    base64:
      "eyJtb2RlbHMiOlt7InRpbWVzdGFtcCI6IjE3OTUyNjIzODIyMzgiLCJkaW1lbnNpb25zIjp7OTIyMzM3MjAzNjg1NDc3NTgwODoid2ViLTEiLCLQutC70Y7RhyI6IvCfmIAifSwibWV0YWRhdGFGaWVsZHMiOnsibmFtZSI6Im4iLCJ0eXBlIjoidCIsImRlZXAiOnsiYSI6W3RydWVdfX19XX0=",
  },
];
