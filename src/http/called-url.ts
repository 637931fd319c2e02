/** The address by which a port is called. */
export function calledUrl(host: string, port: number, secure: boolean): string {
  // Nothing can be called at the address that means all of them.
  const called = host === "0.0.0.0" || host === "::" ? "localhost" : host;
  const name = called.includes(":") ? `[${called}]` : called;
  return `${secure ? "https" : "http"}://${name}:${port}`;
}
