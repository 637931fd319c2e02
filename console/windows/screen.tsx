/** Maintenance windows. */
export function WindowsScreen() {
  return <h1>Windows</h1>;
}
