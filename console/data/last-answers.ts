import { address, linkTo, screenName } from "./address.ts";

/** The last answers of the addresses a person was at: shown again where the server is away when the person comes back. */
const answers = new Map<string, unknown>();
const answersMax = 60;

/** Names an answer of the address the page is at; `parameters` are those that it depends on. */
export function answerHere(name: string, parameters = address.peek().parameters): string {
  const { path } = address.peek();
  return `${linkTo([screenName.peek(), ...path.slice(1)], parameters)} ${name}`;
}

export function rememberAnswer(key: string, answer: unknown): void {
  answers.delete(key);
  answers.set(key, answer);
  const [oldest] = answers.keys();
  if (answers.size > answersMax && oldest !== undefined) answers.delete(oldest);
}

export const lastAnswer = <T>(key: string) => answers.get(key) as T | undefined;

/** Forgets all of them: another session may read other things. */
export function forgetAnswers(): void {
  answers.clear();
}
