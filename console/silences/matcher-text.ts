/** Writes the matcher of a label's value, as the server reads it. */
export function equalityText(name: string, value: string): string {
  const word = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name) ? name : inQuotes(name);
  return `${word}=${inQuotes(value)}`;
}

const inQuotes = (text: string) =>
  `"${text.replaceAll(/[\\"\n]/g, (character) => (character === "\n" ? "\\n" : `\\${character}`))}"`;
