/** Credentials that destinations use. */
export function Credentials() {
  return <h1>Credentials</h1>;
}
