/** A command of a document, and the lines that it shows as the answer; none are shown when it is empty. */
export interface Step {
  command: string;
  answer: string;
}

/** The commands of the console blocks in a document, in their order. */
export function consoleSteps(document: string): Step[] {
  return [...document.matchAll(/^```console\n(.*?)^```/gms)]
    .flatMap(([, block = ""]) => block.split(/^\$ /m).slice(1))
    .map((text) => {
      const [command = "", ...answer] = text.trimEnd().split("\n");
      return { command, answer: answer.join("\n") };
    });
}

/** What varies from run to run, as documents show it, and what may stand there instead. */
const varying: [shown: RegExp, pattern: string][] = [
  [/"[\w-]{27}=(?::\d+)?"/, '"[\\w-]{27}=(?::\\d+)?"'],
  [/"1\d{12}"/, '"1\\d{12}"'],
  [/…/, "[^]*?"],
];

/** An answer as it is shown: the same members in the same order with the same values, but for ids and times; … is anything. */
export function shape(shown: string): RegExp {
  const any = new RegExp(`(${varying.map(([{ source }]) => source).join("|")})`);
  const parts = shown.split(any).map((part, i) => {
    if (i % 2 === 0) return part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    return varying.find(([pattern]) => pattern.test(part))?.[1];
  });
  return new RegExp(`^${parts.join("")}$`);
}

/** A script that runs commands one after the other, with jobs, as where people type; `answersOf` parts what it prints. */
export function script(first: string, commands: readonly string[]): string {
  return ["set -m", first, ...commands.flatMap((command, i) => [`printf "\\n=== ${i}\\n"`, command])].join("\n");
}

/** What each command of a script has printed. */
export function answersOf(stdout: string): string[] {
  return stdout.split(/^=== \d+\n/m).slice(1);
}
