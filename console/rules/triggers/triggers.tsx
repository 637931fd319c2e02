/** Triggers of the tenant. */
export function Triggers() {
  return <h1>Triggers</h1>;
}
