/** The detail of an error's reason, as JSON. */
export function reasonDetail(name: string) {
  return {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    reason: `ERROR_REASON_${name}`,
    domain: "belfry",
    metadata: {},
  };
}
