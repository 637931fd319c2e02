import { LRUCache } from "lru-cache";
import { RE2JS, RE2JSSyntaxException } from "re2js";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { invalidField } from "../errors.ts";
import type { Pace } from "../event-loop.ts";
import { type ExpressionSize, expressionSize, type PatternMistake } from "./expression-size.ts";

/** What a comparison finds; undefined: it would take too many steps, so it is not made. */
export type ComparisonResult = boolean | undefined;

/** At once where nothing is to be waited for: most of a tenant's thousands of comparisons are. */
export type Later<T> = T | Promise<T>;

/** A regular expression of RE2's syntax. It is compiled when it is first compared, and again after others took its place in memory. */
export interface Expression {
  readonly source: string;
  /** Whether it is compared with whole texts; else with all that they contain. */
  readonly whole: boolean;
  /** The only texts that it matches where it is plain to see; undefined: others. */
  readonly values: readonly string[] | undefined;
  /** What every match of the whole begins with, as far as that is plain to see: to compare it takes a tenth of the program's time. */
  readonly begin: string;
  /** Undefined: it cannot be compiled. */
  readonly size: ExpressionSize | undefined;
  /** Why it would not be accepted today; undefined: it would. */
  readonly refusal: PatternMistake | undefined;
}

/** An expression of a larger program is refused before it is compiled: 1,000 instructions take up to 40 ms, 8 MB up to 60 ms. */
const instructionsMax = 1000;
const bytesMax = 8_000_000;
/** One that was stored by an earlier version is compiled up to this size, and up to what a request may bring: in 120 ms. */
const storedInstructionsMax = 10_000;
/**
 * A comparison takes no more steps, which are instructions times characters: 2,500,000 take 75 ms at worst. `.*refused.*` takes 426,000 for
 * 32 KiB.
 */
export const stepsMax = 2_500_000;
/** What PostgreSQL's error says of a comparison that would take more. */
export const tooManySteps = "too many steps";
/** What one request brings, or one row stores, compiles in 150 ms. */
const totalInstructionsMax = 10_000;
const totalBytesMax = 20_000_000;

/** The expressions of one request or row. */
export interface ExpressionCount {
  instructions: number;
  bytes: number;
}

export const newExpressionCount = (): ExpressionCount => ({ instructions: 0, bytes: 0 });

/** Counts one more expression. @throws code 3 when they are too many */
export function countExpression(count: ExpressionCount, { size }: Pick<Expression, "size">, path: string): void {
  count.instructions += size?.instructions ?? 0;
  count.bytes += size?.bytes ?? 0;
  if (count.instructions > totalInstructionsMax || count.bytes > totalBytesMax)
    throw invalidField(path, "the expressions are too complex together", FieldRule.SIZE);
}

/** Reads an expression without compiling it. One with a `refusal` is for what is stored; it is compared within the same bounds. */
export function readExpression(source: string, whole: boolean): Expression {
  const begin = whole ? beginOf(source) : "";
  const values = whole ? valuesOf(source) : undefined;
  const size = expressionSize(source);
  if ("reason" in size) return { source, whole, values, begin, size: undefined, refusal: size };
  const { instructions, bytes } = size;
  const isTooComplex = instructions > instructionsMax || bytes > bytesMax;
  const refusal = isTooComplex ? { at: 0, reason: "the expression is too complex" } : undefined;
  const isCompiled = instructions <= storedInstructionsMax && bytes <= totalBytesMax;
  return { source, whole, values, begin, size: isCompiled ? size : undefined, refusal };
}

/** Hardly a label has a longer value, though one of an event's metadata may have 65,536 characters: trouble that never comes is not said. */
const usualCharactersMax = 8192;

/** Says which values a stored expression leaves undecided; empty: none that is likely. */
export function expressionTrouble({ size, values, refusal }: Expression): string {
  const reason = refusal === undefined ? "" : `${refusal.reason}: `;
  if (size === undefined) return `${reason}it is compared with nothing`;
  const charactersMax = Math.floor(stepsMax / size.weight);
  if (values !== undefined) return refusal?.reason ?? "";
  if (charactersMax >= usualCharactersMax) return "";
  return `${reason}it is compared with values of up to ${charactersMax} characters`;
}

/** A compiled expression with the states that its comparisons have found. */
interface Program {
  readonly re: RE2JS;
  readonly bytes: number;
  /** Instructions times characters of what was not found among its states, since it was last counted. */
  steps: number;
  /** What it was last counted with. */
  countedBytes: number;
}

/** The programs of this process, with their states: the least used go, and are compiled again. */
const programs = new LRUCache<string, Program>({
  maxSize: 64 * 1024 * 1024,
  sizeCalculation: ({ countedBytes }) => countedBytes,
});
/** What the states of one may take; with more of them it is not faster. */
const statesBytesMax = 1024 * 1024;
/** Growth below this is not counted at once. */
const grainBytes = 4096;
/** A character whose next state is known takes an eighth of a step. */
const charactersAStep = 8;
/** To compile 20 MB takes as long as 4,000,000 steps. */
const compileStepsPerByte = 0.2;

/** What all compiled expressions take, and how many they are. */
export const expressionMemory = () => ({ bytes: programs.calculatedSize, count: programs.size });

function stateBytes(re: RE2JS): number {
  const { stateBudget, memBudget } = re.re2().dfa;
  return stateBudget - memBudget;
}

/** Compiles it; undefined where re2js finds a mistake all the same. What is no transition between known states is counted. */
function compiled({ source, size }: Expression): Program | undefined {
  let re: RE2JS;
  try {
    re = RE2JS.compile(source);
  } catch (error) {
    if (error instanceof RE2JSSyntaxException) return undefined;
    throw error;
  }
  const bytes = size?.bytes ?? 0;
  const program: Program = { re, bytes, steps: 0, countedBytes: bytes };
  const { dfa } = re.re2();
  dfa.stateBudget = statesBytesMax;
  dfa.memBudget = statesBytesMax;
  const weight = size?.weight ?? 0;
  const makeState = dfa.makeState.bind(dfa);
  dfa.makeState = (...state) => {
    program.steps += weight;
    return makeState(...state);
  };
  const match = dfa.match.bind(dfa);
  dfa.match = (input, ...how) => {
    const found = match(input, ...how);
    // Its machine without states decides.
    if (found === null) program.steps += weight * input.endPos();
    return found;
  };
  return program;
}

function turnOf(pace: Pace): Promise<void> | undefined {
  return pace.share === undefined ? pace() : pace.share.turn();
}

/**
 * Compares a text with an expression, in a turn of its own where that may take long: in at most `stepsMax` steps, of which what it takes is
 * counted against the tenant's share.
 */
export function compareExpression(expression: Expression, text: string, pace: Pace): Later<ComparisonResult> {
  const { size, values, begin } = expression;
  if (values !== undefined) return values.includes(text);
  if (size === undefined) return undefined;
  if (text === "") return size.matchesEmpty;
  if (!text.startsWith(begin)) return false;
  if (size.weight * text.length > stepsMax) return undefined;
  const turn = turnOf(pace);
  return turn === undefined
    ? withProgram(expression, text, pace)
    : turn.then(() => withProgram(expression, text, pace));
}

function withProgram(expression: Expression, text: string, pace: Pace): Later<ComparisonResult> {
  const known = programs.get(expression.source);
  if (known !== undefined) return found(known, expression, text, pace);
  const program = compiled(expression);
  if (program === undefined) return undefined;
  programs.set(expression.source, program);
  pace.share?.spend(program.bytes * compileStepsPerByte);
  const turn = pace();
  return turn === undefined
    ? found(program, expression, text, pace)
    : turn.then(() => found(program, expression, text, pace));
}

function found(program: Program, { source, whole }: Expression, text: string, pace: Pace): boolean {
  const { re } = program;
  program.steps = text.length / charactersAStep;
  const answer = whole ? re.testExact(text) : re.test(text);
  pace.share?.spend(program.steps);
  const bytes = program.bytes + stateBytes(re);
  if (Math.abs(bytes - program.countedBytes) > grainBytes) {
    // The same value set again would keep its size.
    programs.delete(source);
    program.countedBytes = bytes;
    programs.set(source, program);
  }
  return answer;
}

/** Texts without a meaning in expressions, one or several to choose from; karma puts them into a group. */
const literals = /^[\w :/,@%-]+(?:\|[\w :/,@%-]+)*$/;
const inGroup = /^\^\(\?:([^()]*)\)\$$/;

function valuesOf(expression: string): readonly string[] | undefined {
  const [, inner = expression] = inGroup.exec(expression) ?? [];
  return literals.test(inner) ? inner.split("|") : undefined;
}

function beginOf(expression: string): string {
  // Alternatives, flags and quotations may change what the first characters mean.
  const [plain = ""] = /^[\w :/,@%-]*/.exec(expression) ?? [];
  if (plain === "" || /\||\(\?|\\Q/.test(expression)) return "";
  const isRepeated = /^[*+?{]/.test(expression.slice(plain.length));
  return isRepeated ? plain.slice(0, -1) : plain;
}

/**
 * Decides an `and` of answers, or an `or` where `decisive` is true, that may come later. Undefined where the undecided ones decide.
 */
export function answerOf<Part>(
  parts: readonly Part[],
  ask: (part: Part) => Later<ComparisonResult>,
  decisive: boolean,
): Later<ComparisonResult> {
  let undecided = false;
  for (let i = 0; i < parts.length; i++) {
    const answer = ask(parts[i] as Part);
    if (answer instanceof Promise) return answerLater(answer, { parts: parts.slice(i + 1), ask, decisive, undecided });
    if (answer === decisive) return decisive;
    undecided ||= answer === undefined;
  }
  return undecided ? undefined : !decisive;
}

interface Rest<Part> {
  parts: readonly Part[];
  ask(part: Part): Later<ComparisonResult>;
  decisive: boolean;
  undecided: boolean;
}

async function answerLater<Part>(
  first: Promise<ComparisonResult>,
  { parts, ask, decisive, undecided }: Rest<Part>,
): Promise<ComparisonResult> {
  const answer = await first;
  if (answer === decisive) return decisive;
  const rest = await answerOf(parts, ask, decisive);
  if (rest === decisive) return decisive;
  return undecided || answer === undefined ? undefined : rest;
}

/** Returns what was decided of a filter or preview. @param path its place in the request @throws code 3 where it is undecided */
export function decided(answer: ComparisonResult, path: string): boolean {
  if (answer === undefined) throw undecided(path);
  return answer;
}

/** A value is too long for the expressions of a request. */
export const undecided = (path: string) =>
  invalidField(
    path,
    `compares a value that is too long for its expression: that takes more than ${stepsMax} steps, which are instructions times characters`,
    FieldRule.REGULAR_EXPRESSION,
  );

/** A statement with expressions took longer than the server allows. */
export const tooManyComparisons = () =>
  invalidField(
    "",
    "compares too many values, or too long ones, with regular expressions: make them simpler, or narrow the search by other conditions",
    FieldRule.REGULAR_EXPRESSION,
  );

/** The opposite of an answer; what is undecided stays so. */
export function negated(answer: Later<ComparisonResult>): Later<ComparisonResult> {
  if (answer instanceof Promise) return answer.then((found) => (found === undefined ? undefined : !found));
  return answer === undefined ? undefined : !answer;
}
