/** Destinations of the tenant. */
export function Destinations() {
  return <h1>Destinations</h1>;
}
