import { didYouMean } from "../transcoding/did-you-mean.ts";
import { program } from "../version.ts";

/** How commands are called, and what each does; a row without a call goes on with the row before it. */
export type Usage = readonly (readonly [call: string, does: string])[];

interface Command {
  readonly words: readonly string[];
  /** Parameters as the call names them, those in brackets last. */
  readonly parameters: readonly string[];
  /** Options that take a value, with their dashes. */
  readonly options: readonly string[];
  readonly rows: readonly (readonly [call: string, does: string])[];
}

/** Other programs' words for commands of this one. */
const otherWords: Readonly<Record<string, string>> = {
  start: "serve",
  run: "serve",
  up: "serve",
  server: "serve",
  upgrade: "migrate",
  update: "migrate",
  login: "console",
  ui: "console",
  open: "console",
  backup: "export",
  dump: "export",
  restore: "import",
};

const isParameter = (part: string) => part.startsWith("<") || part.startsWith("[<");
const isOption = (part: string) => part.startsWith("[--");

function commandsOf(usage: Usage): Command[] {
  const commands: (Command & { rows: [string, string][] })[] = [];
  for (const [call, does] of usage) {
    if (call === "") {
      commands.at(-1)?.rows.push([call, does]);
      continue;
    }
    const parts = call.match(/\[[^\]]*\]|<[^>]*>|\S+/g) ?? [];
    commands.push({
      words: parts.filter((part) => !isParameter(part) && !isOption(part)),
      parameters: parts.filter(isParameter),
      options: parts.filter(isOption).map((part) => part.slice(1).split(" ", 1)[0] as string),
      rows: [[call, does]],
    });
  }
  return commands;
}

const startsWith = (words: readonly string[], start: readonly string[]) => start.every((word, i) => words[i] === word);

/** A line of help: a call and what it does. */
export function usageLine(call: string, does: string): string {
  if (call.length > 65) return `  ${call}\n${" ".repeat(68)}${does}`;
  return `  ${call.padEnd(66)}${does}`;
}

function linesOf(commands: readonly Command[]): string {
  const rows = commands.flatMap(({ rows }) => rows);
  return rows.map(([call, does]) => usageLine(call === "" ? "" : `${program} ${call}`, does)).join("\n");
}

/** The help of all commands. */
export function allCommands(usage: Usage): string {
  return linesOf(commandsOf(usage));
}

/** The help of the commands that begin with these words; undefined when there are none. */
export function helpOf(usage: Usage, words: readonly string[]): string | undefined {
  const found = commandsOf(usage).filter(
    (command) => startsWith(command.words, words) || startsWith(words, command.words),
  );
  return found.length === 0 ? undefined : linesOf(found);
}

/** What is wrong with a command line that no command takes, and the help of those that were meant. */
export function troubleWith(usage: Usage, args: readonly string[]): string {
  const commands = commandsOf(usage);
  const meant = commands.find(({ words }) => startsWith(args, words));
  if (meant !== undefined) return `${wrongParameters(meant, args.slice(meant.words.length))}\n${linesOf([meant])}`;
  const [first = "", second] = args;
  const group = commands.filter(({ words }) => words[0] === first);
  const all = `all commands and settings: ${program} --help`;
  if (group.length > 0) {
    const next = group.map(({ words }) => words[1] as string);
    const what = second === undefined ? `needs one of ${next.join(", ")}` : `has no ${JSON.stringify(second)}`;
    return `${first} ${what}${second === undefined ? "" : didYouMean(second, next)}\n${linesOf(group)}`;
  }
  if (args.length === 0) return `which command?\n${linesOf(commands)}\n${all}`;
  const firsts = [...new Set(commands.map(({ words }) => words[0] as string))];
  const other = firsts.find((name) => name === otherWords[first]);
  const hint = other === undefined ? didYouMean(first, firsts) : `; did you mean ${JSON.stringify(other)}?`;
  return `there is no command ${JSON.stringify(first)}${hint}\n${all}`;
}

function wrongParameters({ words, parameters, options }: Command, given: readonly string[]): string {
  const name = words.join(" ");
  const plain: string[] = [];
  let waiting: string | undefined;
  for (const part of given) {
    const [option = "", value] = part.split(/=(.*)/s);
    if (waiting !== undefined) waiting = undefined;
    else if (!option.startsWith("-")) plain.push(part);
    else if (!options.includes(option)) return `${name} has no option ${option}${didYouMean(option, options)}`;
    else if (value === undefined) waiting = option;
  }
  if (waiting !== undefined) return `${waiting} needs a value`;
  const missing = parameters.slice(plain.length).filter((parameter) => parameter.startsWith("<"));
  if (missing.length > 0) return `${name} lacks ${missing.join(" ")}`;
  const surplus = plain.slice(parameters.length).map((word) => JSON.stringify(word));
  return surplus.length > 0 ? `${name} takes no ${surplus.join(" ")}` : `${name} is not called like this`;
}
