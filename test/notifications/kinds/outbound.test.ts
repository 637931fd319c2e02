import { describe, expect, test } from "vitest";
import { addressRanges } from "../../../src/config/parsers.ts";
import { type Outbound, OutboundError, outbound } from "../../../src/notifications/kinds/outbound.ts";
import { nameServer } from "../../support/name-server.ts";
import { answering, type HttpReceiver, httpReceiver, misbehaving } from "../../support/receivers.ts";

const allowing = (...ranges: string[]) => addressRanges(ranges.join());

const never = new AbortController().signal;
const post = (client: Outbound, url: string, headers: Record<string, string> = {}) =>
  client.guarded({ method: "POST", url, headers, body: "{}", signal: never });

/** The reason of a request that has no answer. */
async function failure(asked: Promise<unknown>): Promise<OutboundError> {
  const error = await asked.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(OutboundError);
  return error as OutboundError;
}

async function withClient<T>(
  ranges: string[],
  run: (client: Outbound, receiver: HttpReceiver) => Promise<T>,
  timeoutMs = 10_000,
) {
  await using receiver = await httpReceiver();
  const client = outbound({ allowed: allowing(...ranges), timeoutMs });
  try {
    return await run(client, receiver);
  } finally {
    await client.close();
  }
}

describe("an address that is not public is refused before anything is sent", () => {
  const forms = [
    (port: number) => `http://127.0.0.1:${port}/`,
    (port: number) => `http://2130706433:${port}/`,
    (port: number) => `http://0x7f.1:${port}/`,
    (port: number) => `http://0177.0.0.1:${port}/`,
    (port: number) => `http://127.1:${port}/`,
    (port: number) => `http://①②⑦.0.0.1:${port}/`,
    (port: number) => `http://[::1]:${port}/`,
    (port: number) => `http://[::ffff:127.0.0.1]:${port}/`,
    (port: number) => `http://[::ffff:7f00:1]:${port}/`,
    (port: number) => `http://[::7f00:1]:${port}/`,
    (port: number) => `http://0.0.0.0:${port}/`,
    () => "http://169.254.169.254/latest/meta-data/",
    () => "http://[fe80::1]/",
    () => "http://[fd00:ec2::254]/latest/",
    () => "http://192.168.0.1/",
    () => "https://10.0.0.1/",
  ];
  test.each(forms.map((form) => [form(1), form] as const))("%s", (_name, form) =>
    withClient([], async (client, receiver) => {
      const { reason } = await failure(post(client, form(receiver.port)));
      expect(reason).toBe("refused_address");
      expect(receiver.received).toEqual([]);
    }),
  );

  test("localhost, by name", () =>
    withClient([], async (client, receiver) => {
      const { reason } = await failure(post(client, `http://localhost:${receiver.port}/`));
      expect(["refused_address", "unresolved"]).toContain(reason);
      expect(receiver.received).toEqual([]);
    }));

  test("not when its range is allowed", () =>
    withClient(["127.0.0.0/8"], async (client, receiver) => {
      for (const host of ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1"]) {
        const { status } = await post(client, `http://${host}:${receiver.port}/x?y=z`);
        expect(status).toBe(200);
      }
      expect(receiver.received).toHaveLength(4);
      expect(receiver.received[0]).toMatchObject({ method: "POST", path: "/x?y=z", body: "{}" });
    }));
});

describe("a name", () => {
  test("that resolves to addresses that are not public is refused", async () => {
    await using receiver = await httpReceiver();
    await using names = await nameServer((name) =>
      name.startsWith("mapped") ? ["::ffff:127.0.0.1"] : name.startsWith("v6") ? ["::1"] : ["127.0.0.1", "10.0.0.1"],
    );
    const client = outbound({ allowed: allowing(), timeoutMs: 10_000, resolver: names.resolver });
    for (const name of ["inner.example.com", "v6.example.com", "mapped.example.com"]) {
      expect((await failure(post(client, `http://${name}:${receiver.port}/`))).reason).toBe("refused_address");
    }
    expect(receiver.received).toEqual([]);
    await client.close();
  });

  test("is dialled at the address that was judged, whatever it resolves to a moment later", async () => {
    // In this order: what is free of the first address, which everyone uses, is free of the second.
    await using bad = await httpReceiver("127.0.0.1");
    await using good = await httpReceiver("127.0.0.2", bad.port);
    await using names = await nameServer((_name, before) => (before === 0 ? ["127.0.0.2"] : ["127.0.0.1"]));
    const client = outbound({ allowed: allowing("127.0.0.2"), timeoutMs: 10_000, resolver: names.resolver });
    good.answer(answering(200, "", { connection: "close" }));
    const url = `http://rebinding.example.com:${good.port}/`;
    expect((await post(client, url)).status).toBe(200);
    expect(names.asked).toEqual(["rebinding.example.com"]);
    // It has changed: the next connection asks again, and is refused.
    expect((await failure(post(client, url))).reason).toBe("refused_address");
    expect(good.received).toHaveLength(1);
    expect(bad.received).toEqual([]);
    await client.close();
  });

  test("with some addresses that are not public is dialled at the others alone", async () => {
    // In this order: what is free of the first address, which everyone uses, is free of the second.
    await using bad = await httpReceiver("127.0.0.1");
    await using good = await httpReceiver("127.0.0.2", bad.port);
    await using names = await nameServer(() => ["127.0.0.1", "127.0.0.2"]);
    const client = outbound({ allowed: allowing("127.0.0.2"), timeoutMs: 10_000, resolver: names.resolver });
    for (let i = 0; i < 5; i++) {
      expect((await post(client, `http://both${i}.example.com:${good.port}/`)).status).toBe(200);
    }
    expect(bad.received).toEqual([]);
    await client.close();
  });

  test("that no one knows, or whose server is silent, has no address", async () => {
    await using names = await nameServer((name) => (name.startsWith("silent") ? "silence" : []));
    const client = outbound({ allowed: allowing(), timeoutMs: 10_000, resolver: names.resolver });
    expect((await failure(post(client, "http://unknown.example.com/"))).reason).toBe("unresolved");
    expect((await failure(post(client, "http://silent.example.com/"))).reason).toBe("unresolved");
    await client.close();
  });

  test("that only this machine knows is found where inner addresses are allowed", async () => {
    await using receiver = await httpReceiver();
    await using names = await nameServer(() => []);
    const client = outbound({ allowed: allowing("127.0.0.1"), timeoutMs: 10_000, resolver: names.resolver });
    expect((await post(client, `http://localhost:${receiver.port}/`)).status).toBe(200);
    await client.close();
  });
});

describe("a receiver that", () => {
  const local = ["127.0.0.1"];
  test("redirects is not followed", () =>
    withClient(local, async (client, receiver) => {
      receiver.answer(answering(307, "", { location: `${receiver.url}/elsewhere` }));
      expect((await post(client, receiver.url)).status).toBe(307);
      expect(receiver.received).toHaveLength(1);
    }));

  test("hangs, or drips its answer, has no more than the time limit", () =>
    withClient(
      local,
      async (client, receiver) => {
        for (const way of [misbehaving.hangs, misbehaving.drips]) {
          receiver.answer(way);
          expect((await failure(post(client, receiver.url))).reason).toBe("timeout");
        }
      },
      300,
    ));

  test("closes early, or breaks off, has given no answer", () =>
    withClient(local, async (client, receiver) => {
      for (const way of [misbehaving.closesEarly, misbehaving.breaksOff]) {
        receiver.answer(way);
        expect((await failure(post(client, receiver.url))).reason).toBe("network");
      }
    }));

  test("answers 2 MiB is read for 1 MiB", () =>
    withClient(local, async (client, receiver) => {
      receiver.answer(misbehaving.floods);
      const { status, body } = await post(client, receiver.url);
      expect(status).toBe(200);
      expect(body.length).toBe(1024 * 1024);
    }));

  test("answers endless headers is cut off", () =>
    withClient(local, async (client, receiver) => {
      receiver.answer((_request, _response, socket) => {
        socket.write("HTTP/1.1 200 OK\r\n");
        for (let i = 0; i < 3000; i++) socket.write(`x-${i}: ${"y".repeat(100)}\r\n`);
      });
      expect((await failure(post(client, receiver.url))).reason).toBe("network");
    }));

  test("is not there has refused the connection", async () => {
    const receiver = await httpReceiver();
    await receiver[Symbol.asyncDispose]();
    await withClient(local, async (client) => {
      expect((await failure(post(client, receiver.url))).reason).toBe("network");
    });
  });
});

test.each(["ftp://example.com/", "file:///etc/passwd", "example.com", "", "http://", "javascript:alert(1)"])(
  "%j is no address",
  (url) => withClient([], async (client) => expect((await failure(post(client, url))).reason).toBe("bad_address")),
);

test("an address with a password is refused without repeating it", () =>
  withClient(["127.0.0.1"], async (client, receiver) => {
    const error = await failure(post(client, `http://user:Pa55word@127.0.0.1:${receiver.port}/`));
    expect(error.reason).toBe("bad_address");
    expect(error.message).not.toContain("Pa55word");
  }));

test("proxies that the environment names are not used", () =>
  withClient(["127.0.0.1"], async (client, receiver) => {
    process.env.HTTP_PROXY = "http://127.0.0.1:1";
    try {
      expect((await post(client, receiver.url)).status).toBe(200);
    } finally {
      delete process.env.HTTP_PROXY;
    }
  }));

test("the operator's own addresses are dialled whatever they are", () =>
  withClient([], async (client, receiver) => {
    const answer = await client.trusted({ method: "GET", url: receiver.url, headers: {}, signal: never });
    expect(answer.status).toBe(200);
  }));

test("the caller ends a request", () =>
  withClient(["127.0.0.1"], async (client, receiver) => {
    receiver.answer(misbehaving.hangs);
    const end = new AbortController();
    setTimeout(() => end.abort(), 50);
    const asked = client.guarded({ method: "GET", url: receiver.url, headers: {}, signal: end.signal });
    expect((await failure(asked)).reason).toBe("timeout");
  }));
