/** A name in SQL, quoted. */
export class Name {
  readonly text: string;

  constructor(name: string) {
    this.text = `"${name.replaceAll('"', '""')}"`;
  }
}

/** Sends SQL with its parameters, $1 and so on; tells the one that it gets how that ended. Returns what can be cancelled. */
export type Send<T extends object> = (text: string, parameters: unknown[], ended: PromiseWithResolvers<unknown>) => T;

/**
 * What a tagged template makes: a part of other SQL, or a statement of its own that is sent when it is awaited. The driver
 * makes a promise of each, with closures that V8 allocates in its old space, where they keep alive whatever they know until the
 * next full collection; a search consists of a hundred of them.
 */
export class Statement<T extends object> implements PromiseLike<unknown> {
  readonly #strings: readonly string[];
  readonly #values: readonly unknown[];
  readonly #send: Send<T>;
  #answer: Promise<unknown> | undefined;
  /** What was sent, once it was. */
  sent: T | undefined;

  constructor(strings: readonly string[], values: readonly unknown[], send: Send<T>) {
    this.#strings = strings;
    this.#values = values;
    this.#send = send;
  }

  /** Sends it now. */
  execute(): this {
    void this.#run();
    return this;
  }

  // biome-ignore lint/suspicious/noThenProperty: it is awaited like the driver's own
  then<A, B>(
    resolved?: ((value: unknown) => A | PromiseLike<A>) | null,
    rejected?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#run().then(resolved, rejected) as Promise<A | B>;
  }

  catch<B>(rejected: (error: unknown) => B | PromiseLike<B>): Promise<unknown> {
    return this.#run().catch(rejected);
  }

  finally(settled: () => void): Promise<unknown> {
    return this.#run().finally(settled);
  }

  #run(): Promise<unknown> {
    if (this.#answer === undefined) {
      const ended = Promise.withResolvers<unknown>();
      this.#answer = ended.promise;
      const parameters: unknown[] = [];
      const text = this.#write(parameters);
      try {
        this.sent = this.#send(text, parameters, ended);
      } catch (error) {
        ended.reject(error); // the driver throws while it notices that its connection is lost
      }
    }
    return this.#answer;
  }

  #write(parameters: unknown[]): string {
    let text = this.#strings[0] ?? "";
    for (const [i, value] of this.#values.entries()) {
      if (value instanceof Statement) text += value.#write(parameters);
      else if (value instanceof Name) text += value.text;
      else if (Array.isArray(value) && value[0] instanceof Statement)
        for (const part of value as Statement<T>[]) text += ` ${part.#write(parameters)}`;
      else text += `$${parameters.push(value)}`;
      text += this.#strings[i + 1] ?? "";
    }
    return text;
  }
}
