/** Several texts in Prometheus' format as one: each metric is described once, with the samples of all. */
export function mergedMetrics(texts: readonly string[]): string {
  const merged = new Map<string, { head: string; samples: string }>();
  for (const text of texts) {
    for (const metric of text.split(/^(?=# HELP )/m)) {
      const [, head = "", samples = ""] = /^((?:#[^\n]*\n)*)(.*?)\n*$/s.exec(metric) ?? [];
      if (head === "") continue;
      const name = head.split(" ", 3)[2] as string;
      const known = merged.get(name);
      if (known === undefined) merged.set(name, { head, samples });
      else if (samples !== "") known.samples += known.samples === "" ? samples : `\n${samples}`;
    }
  }
  return `${Array.from(merged.values(), ({ head, samples }) => head + samples + (samples && "\n")).join("\n")}`;
}
