/** Writes the matcher of a label's value, as the server reads it. */
export const equalityText = (name: string, value: string): string => matcherText(name, "=", value);

/** Writes a matcher, its name in quotes if it is no plain word. */
export const matcherText = (name: string, operator: string, value: string): string =>
  `${nameText(name)}${operator}${inQuotes(value)}`;

export const nameText = (name: string): string => (/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name) ? name : inQuotes(name));

const inQuotes = (text: string) =>
  `"${text.replaceAll(/[\\"\n]/g, (character) => (character === "\n" ? "\\n" : `\\${character}`))}"`;
