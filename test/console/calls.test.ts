import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import fc from "fast-check";
import { beforeEach, describe, expect } from "vitest";
import { EventQueryService, type WatchEventsRequest } from "#gen/belfry/events/v1/query_service_pb.ts";
import { SessionSchema, SessionService } from "#gen/belfry/tenants/v1/session_service_pb.ts";
import { type DomPage, domPage, eventually } from "../support/dom-page.ts";

/** Proofs that calls came with, by method. */
const proofs = new Map<string, (string | null)[]>();
const watches: WatchEventsRequest[] = [];
let refuse: ConnectError | undefined;
let made = 0;

beforeEach(() => {
  proofs.clear();
  watches.length = 0;
  refuse = undefined;
});

function note({ method, requestHeader }: HandlerContext) {
  proofs.set(method.name, [...(proofs.get(method.name) ?? []), requestHeader.get("service-session-proof")]);
  if (refuse !== undefined && method.name !== "CreateSession") throw refuse;
}

const session = create(SessionSchema, { id: "s", tenant: "Example", client: "Operations", role: "manager" });

/** Answers as a server that has a session for who brings a proof, and whose watch breaks off after its second answer. */
function routes({ service }: ConnectRouter): void {
  service(SessionService, {
    createSession(_request, context) {
      note(context);
      made += 1;
      return { session, pageProof: `proof ${made}` };
    },
    getSession(_request, context) {
      note(context);
      if (context.requestHeader.get("service-session-proof") === null)
        throw new ConnectError("the session has ended; log in again", Code.Unauthenticated);
      return { session };
    },
    deleteSession(_request, context) {
      note(context);
      return {};
    },
  });
  service(EventQueryService, {
    searchEvents(_request, context) {
      note(context);
      return { results: [], pageInfo: {} };
    },
    countEvents(_request, context) {
      note(context);
      return {};
    },
    async *watchEvents(request, context) {
      note(context);
      watches.push(request);
      const round = watches.length;
      yield { cursor: `${round} a` };
      if (round > 3) return void (await new Promise((resolve) => context.signal.addEventListener("abort", resolve)));
      yield { cursor: `${round} b` };
      throw new ConnectError("it breaks off", round === 2 ? Code.ResourceExhausted : Code.Unavailable);
    },
  });
}

const { onPage } = domPage(routes);
const manager = { headers: { "service-api-key": "bf_any" } };
const asked = (method: string) => proofs.get(method) ?? [];

describe("the proof of a session", () => {
  onPage("comes with each call of the page, its watch too, and is that of any tab's last log-in", async (page) => {
    await page.logIn(manager);
    await page.getByText("Nothing is open.").waitFor();
    await eventually(() => asked("WatchEvents").length).toBeGreaterThan(0);
    const mine = `proof ${made}`;
    expect(page.held()).toContain(mine);
    for (const method of ["SearchEvents", "WatchEvents"])
      expect(new Set(asked(method)), method).toEqual(new Set([mine]));
    expect(asked("CreateSession")).toEqual([null]);
    page.keep("belfry.session-proof", "of another tab");
    await page.goto("#/events?status=any");
    await eventually(() => asked("SearchEvents").at(-1)).toBe("of another tab");
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByRole("heading", { name: "Log in" }).waitFor();
    expect(asked("DeleteSession")).toEqual(["of another tab"]);
    expect(page.held()).not.toContain("of another tab");
  });
});

describe("a session that ends", () => {
  onPage("shows where to log in and why, and the address stays", async (page) => {
    await page.logIn(manager, "#/events?severity=5");
    await page.getByText("No occurrence matches").waitFor();
    refuse = new ConnectError("the session has ended; log in again", Code.Unauthenticated);
    await page.goto("#/events?severity=4");
    await page.getByText(/session has ended/).waitFor();
    expect(page.hash()).toContain("severity=4");
  });
});

describe("a server that is away", () => {
  onPage("is waited for, without a word of a session, until it answers", async (page) => {
    refuse = new ConnectError("no one is there", Code.Unavailable);
    await page.reload();
    await page.getByText("The server does not answer; waiting for it…").waitFor();
    expect(page.getByLabel("API key").count()).toBe(0);
    refuse = undefined;
    await page.getByLabel("API key").waitFor();
  });
});

describe("a watch that breaks off", () => {
  onPage("goes on at its last cursor; where that is too old it begins anew, and lists are read again", async (page) => {
    await page.logIn(manager);
    await expect.poll(() => watches.length).toBe(4);
    expect(watches.map(({ cursor }) => cursor)).toEqual(["", "1 b", "", "3 b"]);
    const lists = asked("SearchEvents").length;
    expect(lists).toBeGreaterThan(1);
  });
});

describe("what an address holds", () => {
  interface Address {
    linkTo(path: readonly string[], parameters?: Record<string, string>): string;
    listText(values: readonly string[]): string;
    listOf(name: string): string[];
    setParameters(changes: Record<string, string | undefined>, asStep?: boolean): void;
    address: { value: { path: readonly string[]; parameters: URLSearchParams } };
  }
  const of = async () => (await import(new URL("../../console/data/address.ts", import.meta.url).pathname)) as Address;

  onPage("is read as it was written, whatever the names are", async (page: DomPage) => {
    const { linkTo, listText, listOf, address } = await of();
    const text = fc.string({ unit: "grapheme", maxLength: 12 });
    const names = fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 }), { maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 3 }), text, names, async (path, value, list) => {
        await page.goto(linkTo(path, { value, list: listText(list) }));
        expect(address.value.path).toEqual(path);
        expect(address.value.parameters.get("value")).toBe(value);
        expect(listOf("list")).toEqual(list);
      }),
      { numRuns: 50 },
    );
  });

  onPage("changes by steps that Back undoes, or in place", async (page) => {
    const { setParameters } = await of();
    await page.goto("#/events?a=1");
    setParameters({ b: "2" });
    setParameters({ c: "3" }, false);
    setParameters({ a: undefined, b: "" });
    expect(page.hash()).toBe("#/events?c=3");
    page.goBack();
    await page.waitForHash(/^#\/events\?a=1&b=2&c=3$/);
    page.goBack();
    await page.waitForHash(/^#\/events\?a=1$/);
  });
});
