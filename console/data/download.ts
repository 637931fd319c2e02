/** Stands at the beginning of a file of text by which spreadsheets know that it is UTF-8. */
export const byteOrderMark = "\ufeff";

/** Hands a file to the browser. */
export function download(name: string, type: string, texts: readonly string[]): void {
  const address = URL.createObjectURL(new Blob([...texts], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A line of CSV by RFC 4180. A text that a spreadsheet would take for a formula is preceded by an apostrophe. */
export function csvLine(values: readonly string[]): string {
  const cell = (value: string) => {
    const safe =
      /^(?:[\t\r\n]|[\s\p{Cf}]*[=+\-@＝＋－＠])/u.test(value) && !/^-?\d+(?:\.\d+)?$/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return `${values.map(cell).join(",")}\r\n`;
}
