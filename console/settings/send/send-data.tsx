/** How data get here: an address, a key, and lines to paste. */
export function SendData() {
  return <h1>Send data</h1>;
}
