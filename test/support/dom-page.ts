import { resolveObjectURL } from "node:buffer";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  createRouterTransport,
  type Interceptor,
  type Transport,
} from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { type HTMLAnchorElement, type HTMLElement, type HTMLInputElement, Window } from "happy-dom";
import { afterAll, beforeAll, expect, test } from "vitest";
import { drawn, type Place, placeOf, pressOn, until } from "./dom-locator.ts";
import type { TestServer } from "./server.ts";
import type { TestTenant } from "./tenant.ts";
import { ungrouped } from "./ungrouped.ts";

/** A file that the page handed to the browser. */
interface Download {
  name: string;
  text: string;
}

/** A notification that the page had the browser show. */
interface Notice {
  readonly title: string;
  readonly body: string;
  click(): void;
}

type IsMeant = (message: object) => boolean;

/** The console in a document without layout, which calls the real server as a browser does. */
export interface DomPage extends Place {
  readonly keyboard: { press(key: string): Promise<void>; type(text: string): Promise<void> };
  /** The next file that the page hands to the browser. */
  downloaded(): Promise<Download>;
  /** What the page had the browser notify of, each once. */
  notified(): Notice[];
  /** What the browser says from now on when the page asks whether it may notify. */
  permit(answer: "granted" | "denied"): void;
  /** Moves the page's present, as its clock does every ten seconds. */
  moveOn(): void;
  /** Hides the tab, or brings it into sight. */
  see(state: "hidden" | "visible"): void;
  /** All that the page holds where a script could read it: elements, what inputs hold, storage, address. */
  held(): string;
  sessionStored(): string;
  /** Empties a place of the storage, as a person may. */
  forget(name: string): void;
  /** Stores a text there, as another tab does. */
  keep(name: string, text: string): void;
  hash(): string;
  /** What the browser's tab is called. */
  title(): string;
  goto(hash: string): Promise<void>;
  waitForHash(wanted: RegExp): Promise<void>;
  reload(): Promise<void>;
  goBack(): void;
  goForward(): void;
  logIn(tenant: Pick<TestTenant, "headers">, hash?: string): Promise<void>;
  /** Waits until no call is under way. */
  settled(): Promise<void>;
  /** Lets the next call of a method pass by a function. */
  passBy(method: string, interceptor: Interceptor): void;
  /** Fails the next call of a method, as without a network; of those alone whose message is meant. */
  fail(method: string, isMeant?: IsMeant): Promise<void>;
  /** Holds the next call of a method, of those alone whose message is meant; resolves once it was made. */
  hold(method: string, isMeant?: IsMeant): Promise<{ release(): void; readonly signal: AbortSignal }>;
}

/** What the console's modules export that a page needs. Loaded once there is a document. */
interface Console {
  startPage(transport: Transport): void;
  carryCalls(transport: Transport): void;
  interceptors: readonly Interceptor[];
  findSession(): Promise<void>;
  logInFailure: { value: unknown };
  session: { value: unknown };
  nowMs: { value: number };
  callsUnderWay: { value: number };
  drawPage(): () => void;
}

/** Names that the console takes from its browser and Node.js has not, or has in another form. */
const names = [
  "document",
  "location",
  "history",
  "localStorage",
  "sessionStorage",
  "devicePixelRatio",
  "addEventListener",
  "removeEventListener",
  "dispatchEvent",
  "matchMedia",
  "getComputedStyle",
  "requestAnimationFrame",
  "cancelAnimationFrame",
  "ResizeObserver",
  "MutationObserver",
  "HashChangeEvent",
  "CustomEvent",
  "Element",
  "HTMLElement",
  "Node",
] as const;

const url = "https://console.test/console/";

/** The document of this process: libraries that are loaded once keep it. */
let browser: Window | undefined;
let loaded: Promise<Console> | undefined;
const downloads: Download[] = [];
const notices: Notice[] = [];

/** Stands in for a browser that shows what it is given. */
class BrowserNotification {
  static permission = "default";
  static answer = "granted";
  static async requestPermission() {
    BrowserNotification.permission = BrowserNotification.answer;
    return BrowserNotification.permission;
  }
  onclick: (() => void) | undefined;
  constructor(title: string, { body }: { body: string }) {
    notices.push({ title, body, click: () => this.onclick?.() });
  }
  close() {}
}

function openBrowser(): Window {
  const window = new Window({ url });
  const { HTMLAnchorElement, HTMLElement, HTMLCanvasElement, HTMLDialogElement } = window;
  HTMLAnchorElement.prototype.click = function (this: HTMLAnchorElement) {
    if (this.download === "") return HTMLElement.prototype.click.call(this);
    const { href, download: name } = this;
    void resolveObjectURL(href)
      ?.arrayBuffer()
      // A byte order mark is part of the file.
      .then((bytes) => downloads.push({ name, text: new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes) }));
  };
  const { showModal } = HTMLDialogElement.prototype;
  HTMLDialogElement.prototype.showModal = function () {
    showModal.call(this);
    this.querySelector<HTMLElement>("[autofocus], input, select, textarea, button, a")?.focus();
  };
  // Wide enough for plots to keep points apart.
  Object.defineProperty(HTMLElement.prototype, "clientWidth", { get: () => 1280 });
  // There is nothing to draw on: plots draw into the void.
  const nothing: object = new Proxy(() => nothing, {
    get: (_, name) => (name === Symbol.toPrimitive ? () => 0 : nothing),
  });
  HTMLCanvasElement.prototype.getContext = () => nothing as never;
  return window;
}

/**
 * Puts the browser's names into this process until the file ends. A frame that is waited for then still finds its own: where one of
 * @preact/signals fails, no effect of this process runs any more.
 */
function install(pageUrl: () => string): () => void {
  browser ??= openBrowser();
  const window = browser;
  const nodeFetch = fetch;
  const bound = (value: unknown) =>
    typeof value === "function" && !/^class\b/.test(String(value)) ? value.bind(window) : value;
  const ours: Record<string, unknown> = {
    ...Object.fromEntries(names.map((name) => [name, bound(window[name as keyof Window])])),
    window,
    Notification: BrowserNotification,
    Path2D: class {
      moveTo() {}
      lineTo() {}
      rect() {}
      arc() {}
      closePath() {}
      bezierCurveTo() {}
    },
    fetch: (input: string, init?: RequestInit) =>
      nodeFetch(/^[./]/.test(input) ? new URL(input, pageUrl()) : input, init),
    BroadcastChannel: class extends BroadcastChannel {
      constructor(name: string) {
        super(name);
        (this as unknown as { unref(): void }).unref();
      }
    },
  };
  const before = Object.keys(ours).map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)] as const);
  for (const [name, value] of Object.entries(ours))
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  return () => {
    for (const [name, descriptor] of before) {
      if (name.endsWith("AnimationFrame")) continue;
      if (descriptor === undefined) delete (globalThis as Record<string, unknown>)[name];
      else Object.defineProperty(globalThis, name, descriptor);
    }
  };
}

/** Loads the console's modules. By paths that are no literals: their types are of a browser. */
async function load(): Promise<Console> {
  const of = async (path: string) =>
    (await import(new URL(`../../console/${path}`, import.meta.url).pathname)) as Console;
  const modules = await Promise.all(
    ["frame/start.ts", "data/calls.ts", "data/session.ts", "ui/time.tsx", "draw.tsx"].map(of),
  );
  return Object.assign({}, ...modules.map((each) => ({ ...each })));
}

/** Looks again and again, as `expect.poll`, within a bound that ends what hangs on a busy machine, too. */
export const eventually = <T>(look: () => T) => expect.poll(look);

/** What answers the page: a server, or functions for what no server says when it is wanted. */
type Answering = TestServer | ((router: ConnectRouter) => void);

/** Defines tests on a page of the console, which calls a server or answers by these routes. */
export function domPage(server: Answering) {
  let uninstall: (() => void) | undefined;
  let started: Console;

  beforeAll(async () => {
    uninstall = install(() => (typeof server === "function" ? url : `${server.url}/console/`));
    const first = loaded === undefined;
    loaded ??= load();
    started = await loaded;
    if (first) started.startPage(carrierOf(server, started, new Map()));
  });
  afterAll(async () => {
    // preact and @preact/signals run effects up to 35 ms after a frame. One that has no document any more fails, and with it all later ones.
    await sleep(200);
    uninstall?.();
  });

  return {
    onPage(name: string, body: (page: DomPage) => Promise<void>) {
      test(name, async () => {
        const { page, close } = await openPage(server, started);
        try {
          await body(page);
        } finally {
          await close();
        }
      });
    },
  };
}

type Passes = Map<string, Interceptor[]>;

/** Carries calls to the server with a cookie jar and the header of a browser. */
function carrierOf(server: Answering, { interceptors }: Console, passes: Passes): Transport {
  let cookie = "";
  const asBrowser: Interceptor = (next) => async (request) => {
    request.header.set("sec-fetch-site", "same-origin");
    if (cookie !== "") request.header.set("cookie", cookie);
    const response = await next(request);
    const [set] = response.header.getSetCookie();
    if (set !== undefined) cookie = set.split(";", 1)[0] ?? "";
    return response;
  };
  const bySteps: Interceptor = (next) => (request) => {
    const [pass] = passes.get(request.method.name)?.splice(0, 1) ?? [];
    return pass === undefined ? next(request) : pass(next)(request);
  };
  if (typeof server === "function")
    return createRouterTransport(server, { transport: { interceptors: [...interceptors, bySteps] } });
  const { url: baseUrl, ca } = server.target;
  const nodeOptions = ca === undefined ? {} : { ca: readFileSync(ca) };
  return createConnectTransport({
    baseUrl,
    nodeOptions,
    httpVersion: "2",
    useBinaryFormat: true,
    interceptors: [...interceptors, bySteps, asBrowser],
  });
}

/** Fails once a call is cancelled. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) =>
    signal.addEventListener("abort", () => reject(new ConnectError("The page has cancelled it", Code.Canceled))),
  );
}

async function openPage(server: Answering, started: Console) {
  const window = browser as Window;
  const { document, location, history } = window;
  const passes: Passes = new Map();
  const passBy = (method: string, interceptor: Interceptor) =>
    void passes.set(method, [...(passes.get(method) ?? []), interceptor]);

  const begin = async () => {
    window.localStorage.clear();
    window.sessionStorage.clear();
    window.localStorage.setItem(...ungrouped);
    // What the page has read of it stays as it was until another tab says that it has changed.
    window.dispatchEvent(new window.Event("storage"));
    history.replaceState(null, "", url);
    window.dispatchEvent(new window.HashChangeEvent("hashchange"));
    started.carryCalls(carrierOf(server, started, passes));
    started.session.value = undefined;
    started.logInFailure.value = undefined;
    await started.findSession();
  };

  const see = (value: "hidden" | "visible") => {
    Object.defineProperty(document, "visibilityState", { configurable: true, value });
    document.dispatchEvent(new window.Event("visibilitychange"));
  };

  const held = new Set<PromiseWithResolvers<void>>();

  /** Lets the next call that is meant pass by a function, and those before it as ever. */
  function passNext(method: string, isMeant: IsMeant = () => true, interceptor: Interceptor): void {
    passBy(method, (next) => (request) => {
      if (isMeant(request.message)) return interceptor(next)(request);
      passNext(method, isMeant, interceptor);
      return next(request);
    });
  }

  /** Ends the wait for a call that is never made. */
  const called = <T>(method: string, made: Promise<T>): Promise<T> => {
    let found: { readonly value: T } | undefined;
    const call = until(
      document,
      () => found,
      () => `${method} is not called`,
    ).then(({ value }) => value);
    call.catch(() => undefined); // who waits for it is told, at once or later
    void made.then((value) => {
      found = { value };
    });
    return call;
  };

  downloads.length = 0;
  notices.length = 0;
  await begin();
  let clear = started.drawPage();

  const body = placeOf(document, "page", () => [document.body]);
  const active = () => (document.activeElement?.isConnected ? document.activeElement : document.body) as HTMLElement;
  const more: Omit<DomPage, keyof Place> = {
    passBy,
    moveOn() {
      started.nowMs.value = Math.max(Date.now(), started.nowMs.value + 1);
    },
    see,
    notified: () => notices.splice(0),
    permit(answer) {
      BrowserNotification.answer = answer;
    },
    downloaded: () =>
      until(
        document,
        () => downloads.shift(),
        () => "no file is handed over",
      ),
    held: () =>
      [
        document.documentElement.outerHTML,
        ...[...document.querySelectorAll<HTMLInputElement>("input, textarea")].map(({ value }) => value),
        JSON.stringify([{ ...window.sessionStorage }, { ...window.localStorage }]),
        location.href,
      ].join("\n"),
    forget: (name: string) => window.localStorage.removeItem(name),
    keep: (name: string, text: string) => window.localStorage.setItem(name, text),
    sessionStored: () => JSON.stringify({ ...window.sessionStorage }),
    keyboard: {
      async press(key: string) {
        await drawn(document);
        pressOn(active(), key);
      },
      async type(text: string) {
        await drawn(document);
        const field = active() as HTMLElement & { value: string };
        field.value += text;
        field.dispatchEvent(new window.Event("input", { bubbles: true }));
      },
    },
    hash: () => location.hash,
    title: () => document.title,
    async goto(hash: string) {
      location.hash = hash;
      await drawn(document);
      await page.settled();
    },
    async waitForHash(wanted: RegExp) {
      const look = () => (wanted.test(location.hash) ? true : undefined);
      await until(document, look, () => `the address is ${location.hash}, not ${wanted},`);
    },
    async reload() {
      clear();
      // As in `begin`: a page that begins reads what is stored now.
      window.dispatchEvent(new window.Event("storage"));
      started.session.value = undefined;
      started.logInFailure.value = undefined;
      const found = started.findSession();
      clear = started.drawPage();
      await found;
    },
    goBack: () => history.back(),
    goForward: () => history.forward(),
    async logIn({ headers }: Pick<TestTenant, "headers">, hash = "") {
      location.hash = hash;
      await page.getByLabel("API key").fill(headers["service-api-key"] ?? "");
      await page.getByRole("button", { name: "Log in" }).click();
      await page.getByRole("link", { name: "Belfry" }).waitFor();
    },
    async settled() {
      const rests = () => (started.callsUnderWay.value === 0 ? true : undefined);
      await until(document, rests, () => "calls are still under way");
    },
    fail(method: string, isMeant?: IsMeant) {
      const made = Promise.withResolvers<void>();
      passNext(method, isMeant, () => () => {
        made.resolve();
        return Promise.reject(new ConnectError("Failed to fetch", Code.Unavailable));
      });
      // Itself, not another promise: nobody has to wait for a call that is never made.
      return called(method, made.promise);
    },
    hold(method: string, isMeant?: IsMeant) {
      const made = Promise.withResolvers<{ release(): void; signal: AbortSignal }>();
      passNext(method, isMeant, (next) => async (request) => {
        const gate = Promise.withResolvers<void>();
        held.add(gate);
        made.resolve({ release: gate.resolve, signal: request.signal });
        await Promise.race([gate.promise, aborted(request.signal)]);
        return await next(request);
      });
      return called(method, made.promise);
    },
  };
  // With their accessors, which an assignment would read once.
  const page = Object.defineProperties(body, Object.getOwnPropertyDescriptors(more)) as DomPage;
  const close = async () => {
    // A call that a test has left would be under way for all tests after it.
    for (const gate of held) gate.reject(new ConnectError("The test has ended", Code.Canceled));
    clear();
    see("visible");
    await begin();
  };
  return { page, close };
}
