/** Goes on with a value: at once when it is there, which saves a turn of the microtasks, else when its promise resolves. */
export function whenDone<T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}
