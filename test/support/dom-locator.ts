import { queryAllByLabelText, queryAllByRole } from "@testing-library/dom";
import type { Document, Element, HTMLElement, HTMLInputElement, HTMLSelectElement, Window } from "happy-dom";

interface Named {
  name?: string | RegExp;
  exact?: boolean;
  level?: number;
  selected?: boolean;
  checked?: boolean;
}

/** A place on the page, found again by each use; actions wait until it is there, once and enabled. Named as Playwright's, so that tests read alike. */
export interface Place {
  getByRole(role: string, named?: Named): Place;
  getByLabel(text: string | RegExp, options?: { exact?: boolean }): Place;
  getByText(text: string | RegExp, options?: { exact?: boolean }): Place;
  locator(css: string, options?: { hasText?: string | RegExp; has?: Place }): Place;
  filter(options: { hasText?: string | RegExp; has?: Place }): Place;
  and(other: Place): Place;
  or(other: Place): Place;
  first(): Place;
  last(): Place;
  nth(at: number): Place;
  all(): Place[];
  count(): number;
  isVisible(): boolean;
  /** What the first one holds now; undefined where there is none. */
  value(): string | undefined;
  allTextContents(): string[];
  waitFor(options?: { state?: "attached" | "detached" }): Promise<void>;
  element(): Promise<HTMLElement>;
  textContent(): Promise<string>;
  inputValue(): Promise<string>;
  getAttribute(name: string): Promise<string | null>;
  isDisabled(): Promise<boolean>;
  isChecked(): Promise<boolean>;
  click(options?: { modifiers?: ("Shift" | "Alt")[] }): Promise<void>;
  focus(): Promise<void>;
  fill(text: string): Promise<void>;
  /** Types letter by letter. */
  type(text: string): Promise<void>;
  press(key: string): Promise<void>;
  selectOption(option: string | { label: string } | { index: number }): Promise<void>;
  check(): Promise<void>;
  uncheck(): Promise<void>;
}

/** Ends what never comes. */
const waitMsMax = 30_000;

/** Waits until `look` returns something, after each change of the page. @throws Error of `what` when it never does */
export async function until<T>(document: Document, look: () => T | undefined, what: () => string): Promise<T> {
  const endMs = performance.now() + waitMsMax;
  for (;;) {
    const found = look();
    if (found !== undefined) return found;
    if (performance.now() > endMs) throw new Error(`${what()} within ${waitMsMax} ms; the page: ${shown(document)}`);
    await changed(document);
  }
}

/** Waits until what was done before is drawn, and what follows from that is done: effects begin, the address is followed. */
export function drawn(document: Document): Promise<void> {
  const window = document.defaultView as unknown as Window;
  return new Promise((done) => window.requestAnimationFrame(() => setTimeout(done)));
}

const shown = ({ body }: Document) => squeezed(body.textContent).slice(0, 2000);

/** The next change of the page; what changes without one, such as a value, is looked at a moment later. */
async function changed(document: Document): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const window = document.defaultView as unknown as Window;
  const changes = new window.MutationObserver(() => resolve());
  changes.observe(document.documentElement, { subtree: true, childList: true, attributes: true, characterData: true });
  const timer = setTimeout(resolve, 20);
  await promise;
  clearTimeout(timer);
  changes.disconnect();
}

const squeezed = (text: string | null) => (text ?? "").replace(/\s+/g, " ").trim();

function matcher(wanted: string | RegExp, exact = false): (text: string | null) => boolean {
  if (wanted instanceof RegExp) return (text) => wanted.test(squeezed(text));
  if (exact) return (text) => squeezed(text) === wanted;
  return (text) => squeezed(text).toLowerCase().includes(wanted.toLowerCase());
}

const isHidden = (element: Element) => element.closest("[hidden], dialog:not([open])") !== null;

/** Innermost elements with this text. */
function withText(within: Element, wanted: (text: string | null) => boolean): Element[] {
  const inner = [...within.children].flatMap((child) => withText(child as Element, wanted));
  if (inner.length > 0 || /^(?:SCRIPT|STYLE|NOSCRIPT)$/.test(within.tagName) || !wanted(within.textContent))
    return inner;
  return [within];
}

/** The place that `find` finds within the document, and `name` calls so in errors. */
export function placeOf(document: Document, name: string, find: () => Element[]): Place {
  const next = (what: string, step: (found: Element[]) => Element[]) =>
    placeOf(document, `${name} » ${what}`, () => [...new Set(step(find()))].filter((each) => !isHidden(each)));
  const within = (what: string, query: (each: HTMLElement) => Element[]) =>
    next(what, (found) => found.flatMap((each) => query(each as HTMLElement)));

  async function one(): Promise<HTMLElement> {
    const found = await until(
      document,
      () => (find().length > 0 ? find() : undefined),
      () => `${name} is not there`,
    );
    if (found.length > 1) {
      const each = found.map(({ outerHTML }) => squeezed(outerHTML).slice(0, 500));
      throw new Error(`${name} is there ${found.length} times: ${each.join(" and ")}`);
    }
    return found[0] as HTMLElement;
  }

  async function enabled(): Promise<HTMLElement> {
    await drawn(document);
    const isEnabled = () => {
      const [element] = find();
      const disabled = element?.closest(":disabled, fieldset:disabled") ?? null;
      return element !== undefined && disabled === null ? true : undefined;
    };
    await until(document, isEnabled, () => `${name} is not there and enabled`);
    return await one();
  }

  const setChecked = async (checked: boolean) => {
    const box = (await enabled()) as HTMLInputElement;
    if (box.checked !== checked) box.click();
  };

  const place: Place = {
    getByRole: (role, named = {}) =>
      within(`${role} ${named.name ?? ""}`, (each) => {
        const { name: wanted, exact, ...rest } = named;
        const isNamed = wanted === undefined ? undefined : matcher(wanted, exact);
        const options = { hidden: true, ...rest, ...(isNamed && { name: (text: string) => isNamed(text) }) };
        return queryAllByRole(each as never, role, options) as never;
      }),
    getByLabel: (text, { exact = false } = {}) =>
      within(`label ${text}`, (each) => queryAllByLabelText(each as never, text as never, { exact }) as never),
    getByText: (text, { exact } = {}) => within(`text ${text}`, (each) => withText(each, matcher(text, exact))),
    locator: (css, wanted = {}) => within(css, (each) => [...each.querySelectorAll(css)] as Element[]).filter(wanted),
    filter: ({ hasText, has }) =>
      next(`with ${hasText ?? "that"}`, (found) =>
        found.filter(
          (each) =>
            (hasText === undefined || matcher(hasText)(each.textContent)) &&
            (has === undefined || all(has).some((inner) => each.contains(inner))),
        ),
      ),
    and: (other) => placeOf(document, `${name} and that`, () => find().filter((each) => all(other).includes(each))),
    or: (other) => placeOf(document, `${name} or that`, () => [...find(), ...all(other)]),
    first: () => next("first", (found) => found.slice(0, 1)),
    last: () => next("last", (found) => found.slice(-1)),
    nth: (at) => next(`number ${at}`, (found) => found.slice(at, at + 1)),
    all: () => find().map((element) => placeOf(document, name, () => [element])),
    count: () => find().length,
    isVisible: () => find().length > 0,
    value: () => (find()[0] as HTMLInputElement | undefined)?.value,
    allTextContents: () => find().map(({ textContent }) => textContent),
    async waitFor({ state } = {}) {
      const gone = state === "detached";
      const there = () => (find().length > 0 !== gone ? true : undefined);
      await until(document, there, () => `${name} is ${gone ? "still" : "not"} there`);
    },
    element: one,
    textContent: async () => (await one()).textContent,
    inputValue: async () => ((await one()) as HTMLInputElement).value,
    getAttribute: async (attribute) => (await one()).getAttribute(attribute),
    isDisabled: async () => (await one()).closest(":disabled, fieldset:disabled") !== null,
    isChecked: async () => ((await one()) as HTMLInputElement).checked,
    async click({ modifiers = [] } = {}) {
      const element = await enabled();
      element.focus();
      const window = document.defaultView as unknown as Window;
      const [shiftKey, altKey] = [modifiers.includes("Shift"), modifiers.includes("Alt")];
      element.dispatchEvent(
        new window.MouseEvent("click", { bubbles: true, cancelable: true, composed: true, shiftKey, altKey }),
      );
    },
    focus: async () => (await enabled()).focus(),
    async fill(text) {
      const element = (await enabled()) as HTMLInputElement;
      element.focus();
      element.value = text;
      fire(element, "input");
      fire(element, "change");
    },
    async type(text) {
      const element = (await enabled()) as HTMLInputElement;
      element.focus();
      for (const letter of text) {
        element.value += letter;
        fire(element, "input");
      }
    },
    async press(key) {
      const element = await enabled();
      element.focus();
      pressOn(element, key);
    },
    async selectOption(option) {
      const element = (await enabled()) as unknown as HTMLSelectElement;
      const chosen = await until(
        document,
        () =>
          [...element.options].find(({ value, textContent, index }) => {
            if (typeof option === "string") return value === option || squeezed(textContent) === option;
            return "index" in option ? index === option.index : squeezed(textContent) === option.label;
          }),
        () => `${name} has no option ${JSON.stringify(option)}`,
      );
      element.value = chosen.value;
      fire(element as never, "input");
      fire(element as never, "change");
    },
    check: () => setChecked(true),
    uncheck: () => setChecked(false),
  };
  finders.set(place, find);
  return place;
}

const finders = new WeakMap<Place, () => Element[]>();
const all = (place: Place): Element[] => finders.get(place)?.() ?? [];

function fire(element: Element, type: "input" | "change"): void {
  const window = element.ownerDocument.defaultView as unknown as Window;
  element.dispatchEvent(new window.Event(type, { bubbles: true, cancelable: false }));
}

/** Presses a key such as `Enter` or `Control+k` on an element, with what a browser does of itself unless the page does something else. */
export function pressOn(element: HTMLElement, combination: string): void {
  const window = element.ownerDocument.defaultView as unknown as Window;
  const parts = combination.split("+");
  const key = parts.at(-1) === "Space" ? " " : (parts.at(-1) ?? "");
  const held = { ctrlKey: parts.includes("Control"), shiftKey: parts.includes("Shift") };
  const init = { key, bubbles: true, cancelable: true, ...held };
  const down = new window.KeyboardEvent("keydown", init);
  element.dispatchEvent(down);
  if (!down.defaultPrevented) byItself(element, key);
  element.dispatchEvent(new window.KeyboardEvent("keyup", init));
}

function byItself(element: HTMLElement, key: string): void {
  const { tagName } = element;
  const { type } = element as HTMLInputElement;
  if (tagName === "INPUT" && key === "Enter") {
    fire(element, "change");
    const form = (element as HTMLInputElement).form;
    const submit = form?.querySelector<HTMLElement>("button:not([type]), button[type=submit]");
    if (submit && !(submit as HTMLInputElement).disabled) submit.click();
  } else if (/^(?:BUTTON|A)$/.test(tagName) && (key === "Enter" || (key === " " && tagName === "BUTTON")))
    element.click();
  else if (tagName === "INPUT" && type === "checkbox" && key === " ") element.click();
  else if (key === "Escape") {
    const dialog = element.ownerDocument.querySelector<HTMLElement>("dialog[open]");
    (dialog as unknown as { close(): void } | null)?.close();
  }
}
