import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { pushTimeseries } from "prometheus-remote-write";
// @ts-expect-error: the package has no types
import { compress } from "snappyjs";
import { describe, expect, test } from "vitest";
import { type Metadata_MetricType, RequestSchema } from "#gen/io/prometheus/write/v2/request_pb.ts";
import { WriteRequestSchema } from "#gen/prometheus/remote_write_pb.ts";
import { httpVersions, raw } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { tool } from "./calls.ts";

const server = await testServer();
const path = "/api/v1/write";
const version1 = { "content-type": "application/x-protobuf", "content-encoding": "snappy" };
const version2 = { ...version1, "content-type": "application/x-protobuf;proto=io.prometheus.write.v2.Request" };

type Labels = Record<string, string>;
interface Series {
  labels: Labels | [string, string][];
  samples?: [timeMs: number, value: number][];
  histograms?: [timeMs: number, count: number, sum: number][];
  exemplars?: number;
  /** Of each histogram. */
  deltas?: number;
  help?: string;
  unit?: string;
  type?: Metadata_MetricType;
}
const pairs = ({ labels }: Series) => (Array.isArray(labels) ? labels : Object.entries(labels));
const pointsOf = ({ samples = [], histograms = [], exemplars = 0, deltas = 0 }: Series) => ({
  samples: samples.map(([timeMs, value]) => ({ timestamp: BigInt(timeMs), value })),
  histograms: histograms.map(([timeMs, count, sum]) => ({
    timestamp: BigInt(timeMs),
    sum,
    count: { case: "countInt" as const, value: BigInt(count) },
    positiveDeltas: Array.from({ length: deltas }, () => 1n),
  })),
  exemplars: Array.from({ length: exemplars }, () => ({ value: 1 })),
});

function bytesOf1(
  series: Series[],
  metadata: { metricFamilyName: string; help?: string; unit?: string; type?: Metadata_MetricType }[] = [],
) {
  const timeseries = series.map((each) => ({
    ...pointsOf(each),
    labels: pairs(each).map(([name, value]) => ({ name, value })),
  }));
  return toBinary(WriteRequestSchema, create(WriteRequestSchema, { timeseries, metadata }));
}

function bytesOf2(series: Series[]) {
  const symbols = [""];
  const symbol = (text: string) => {
    if (!symbols.includes(text)) symbols.push(text);
    return symbols.indexOf(text);
  };
  const timeseries = series.map((each) => ({
    ...pointsOf(each),
    labelsRefs: pairs(each).flat().map(symbol),
    metadata: { type: each.type ?? 0, helpRef: symbol(each.help ?? ""), unitRef: symbol(each.unit ?? "") },
  }));
  return toBinary(RequestSchema, create(RequestSchema, { symbols, timeseries }));
}

/** Bytes whose text "spoil" is replaced by what is no UTF-8. */
function spoilt(bytes: Uint8Array): Uint8Array {
  const own = Buffer.from(bytes);
  return own.fill(0xff, own.indexOf("spoil"), own.indexOf("spoil") + 5);
}

const packed = (bytes: Uint8Array) => Buffer.from(compress(bytes));
const hourMs = 3_600_000;
const now = Math.floor(Date.now() / hourMs) * hourMs - hourMs;
const up = (more: Labels = {}): Labels => ({ __name__: "up", instance: "a:9100", job: "node", ...more });
const staleMark = 0x7ff0000000000002n;

/** A tenant of its own, that sends as Prometheus does and reads as a user does. */
async function world() {
  const tenant = await testTenant(server.database.sql);
  const call = tool(server, tenant.headers);
  const json = v1(server.url, tenant.headers);
  const send = (bytes: Uint8Array, headers: Record<string, string> = version1) =>
    call("POST", path, packed(bytes), headers);
  /** `name{labels} last value` of an entity's series, in their order. */
  async function stored(field = "job", value = "node", aggregator = "LAST") {
    const { body } = await json("POST", "/v1/metrics:search", {
      entityClause: { filter: { field, operation: "OP_EQUALS", value } },
      timeRange: { start: new Date(now).toISOString(), end: new Date(now + hourMs).toISOString() },
      downsample: { aggregator, period: "1h" },
    });
    return body.metrics as { name: string; labels: Labels; values: number[]; type?: string; temporality?: string }[];
  }
  return {
    tenant,
    call,
    send,
    stored,
    facts: async () => [
      ...(await server.database
        .sql`select metric, units, description from series where tenant_id = ${tenant.id} order by metric`),
    ],
    write: (...series: Series[]) => send(bytesOf1(series)),
    write2: (...series: Series[]) => send(bytesOf2(series), version2),
    shown: async (field?: string, value?: string) =>
      (await stored(field, value)).map(
        ({ name, labels, values }) =>
          `${name}${JSON.stringify(Object.fromEntries(Object.entries(labels).sort()))} ${values.join()}`,
      ),
  };
}
const written = (samples: number, histograms = 0) => ({
  "x-prometheus-remote-write-samples-written": String(samples),
  "x-prometheus-remote-write-histograms-written": String(histograms),
  "x-prometheus-remote-write-exemplars-written": "0",
});
const headersOf = (headers: object) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith("x-prometheus")));

describe("samples are stored, and answered with 204", () => {
  test("version 1, without the headers of version 2", async () => {
    const { write, shown } = await world();
    const answer = await write(
      {
        labels: up({ zone: "x" }),
        samples: [
          [now + 60_000, 1],
          [now, 2],
        ],
      },
      { labels: up(), samples: [[now, 3]] },
    );
    expect(answer).toMatchObject({ status: 204, body: "" });
    expect(headersOf(answer.headers)).toEqual({});
    expect(await shown()).toEqual(["up{} 3", 'up{"zone":"x"} 1']);
    // The series that are known by now.
    expect((await write({ labels: up({ zone: "x" }), samples: [[now + 120_000, 4]] })).status).toBe(204);
    expect(await shown()).toEqual(["up{} 3", 'up{"zone":"x"} 4']);
  });

  test("version 2, with how many were written; the same series as those of version 1", async () => {
    const { write, write2, stored, facts } = await world();
    await write({ labels: up(), samples: [[now, 1]] });
    const answer = await write2(
      { labels: up(), samples: [[now + 1000, 5]], help: "Whether it is up", unit: "bool", type: 2, exemplars: 2 },
      { labels: { ...up(), __name__: "h" }, histograms: [[now, 7, 1.5]], type: 3 },
    );
    expect(answer).toMatchObject({ status: 204, body: "" });
    expect(headersOf(answer.headers)).toEqual(written(1, 1));
    expect(await stored()).toMatchObject([
      { name: "h_count", values: [7], type: "HISTOGRAM", temporality: "CUMULATIVE" },
      { name: "h_sum", values: [1.5], type: "HISTOGRAM", temporality: "CUMULATIVE" },
      { name: "up", values: [5], type: "GAUGE" },
    ]);
    expect((await facts()).at(-1)).toEqual({ metric: "up", units: "bool", description: "Whether it is up" });
  });

  test("without labels of an entity: source=prometheus; an empty label is none", async () => {
    const { write, shown } = await world();
    await write({ labels: { __name__: "up", a: "", job: "" }, samples: [[now, 1]] });
    expect(await shown("source", "prometheus")).toEqual(["up{} 1"]);
  });

  test("names that look alike stay apart", async () => {
    const { write, shown } = await world();
    const names = ["a.b", "a_b", "a:b", "é", "日本"];
    await write(...names.map((name, i) => ({ labels: { ...up(), __name__: name }, samples: [[now, i]] }) as Series));
    await write({
      labels: [
        ["__name__", "k"],
        ["a.b", "1"],
        ["a_b", "2"],
        ["instance", "a:9100"],
        ["job", "node"],
        ["é", "3"],
      ],
      samples: [[now, 9]],
    });
    expect((await shown()).sort()).toEqual(
      [...names.map((name, i) => `${name}{} ${i}`), 'k{"a.b":"1","a_b":"2","é":"3"} 9'].sort(),
    );
  });

  test("what is not a number is skipped, and counts as written", async () => {
    const { write2, shown } = await world();
    const stale = new DataView(new ArrayBuffer(8));
    stale.setBigUint64(0, staleMark);
    const samples: [number, number][] = [
      [now, 1],
      [now + 1, stale.getFloat64(0)],
      [now + 2, Number.NaN],
    ];
    const answer = await write2({ labels: up(), samples, histograms: [[now, 0, Number.NaN]] });
    expect([answer.status, headersOf(answer.headers)]).toEqual([204, written(3, 1)]);
    expect(await shown()).toEqual(["up{} 1"]);
  });

  test("metadata, which come in requests of their own, become units and description", async () => {
    const { send, write, facts } = await world();
    const lines: Series = { labels: { ...up(), __name__: "io_bytes_total" }, samples: [[now, 1]] };
    await write(lines);
    expect(
      (await send(bytesOf1([], [{ metricFamilyName: "io_bytes", help: "Read\r\n\tof\u0007disks", unit: "by\ntes" }])))
        .status,
    ).toBe(204);
    await write(lines);
    expect(await facts()).toEqual([{ metric: "io_bytes_total", units: "by tes", description: "Read\n\tof disks" }]);
  });

  test("64 labels beside those of the entity, in any order, are one series", async () => {
    const own = Array.from({ length: 64 }, (_, i): [string, string] => [`k${i}`, "v"]);
    const sent: [string, string][] = [["__name__", "cadvisor"], ["job", "node"], ["instance", "a:1"], ...own];
    for (const version of [1, 2]) {
      const { write, write2, stored } = await world();
      const both = [sent, [...sent].reverse()].map((labels, i): Series => ({ labels, samples: [[now + i, i]] }));
      expect((await (version === 1 ? write : write2)(...both)).status).toBe(204);
      expect(await stored()).toMatchObject([{ name: "cadvisor", labels: Object.fromEntries(own), values: [1] }]);
    }
  });

  test("types, which are the metrics' of a family; when a counter began is none", async () => {
    const { send, write, stored } = await world();
    const families = ["none", "c", "g", "h", "gh", "s", "i", "set"];
    const metadata = families.map((metricFamilyName, type) => ({
      metricFamilyName,
      type: type as Metadata_MetricType,
    }));
    expect(
      (await send(bytesOf1([], [...metadata, { metricFamilyName: "later", type: 8 as Metadata_MetricType }]))).status,
    ).toBe(204);
    const names = ["none", "c_total", "c_created", "g", "h_bucket", "h_count", "gh_sum", "s", "i_info", "set", "later"];
    await write(...names.map((name): Series => ({ labels: { ...up(), __name__: name }, samples: [[now, 1]] })));
    const found = await stored();
    expect(Object.fromEntries(found.map(({ name, type, temporality }) => [name, [type, temporality]]))).toEqual({
      none: [undefined, undefined],
      c_created: [undefined, undefined],
      later: [undefined, undefined],
      c_total: ["COUNTER", "CUMULATIVE"],
      g: ["GAUGE", undefined],
      s: ["SUMMARY", "CUMULATIVE"],
      h_bucket: ["HISTOGRAM", "CUMULATIVE"],
      h_count: ["HISTOGRAM", "CUMULATIVE"],
      gh_sum: ["GAUGE_HISTOGRAM", undefined],
      i_info: ["INFO", undefined],
      set: ["STATE_SET", undefined],
    });
  });

  test.each([
    ["no message at all", new Uint8Array(), version1],
    ["a series without samples", bytesOf1([{ labels: up() }]), version1],
    ["no message of version 2", new Uint8Array(), version2],
    ["only symbols", bytesOf2([]), version2],
  ])("nothing: %s", async (_, bytes, headers) => {
    const { send } = await world();
    expect(await send(bytes, headers)).toMatchObject({ status: 204, body: "" });
  });

  test.each([
    [{ "content-type": "application/x-protobuf" }],
    [{ "content-encoding": "snappy", "content-type": "application/x-protobuf;proto=prometheus.WriteRequest" }],
    [{ "content-encoding": "SNAPPY", "content-type": "Application/X-Protobuf; charset=x" }],
    [{ "content-encoding": "snappy", "content-type": "" }],
    [{ ...version1, "x-prometheus-remote-write-version": "9" }],
  ])("headers that mean version 1: %j", async (headers) => {
    const { send } = await world();
    expect((await send(bytesOf1([{ labels: up(), samples: [[now, 1]] }]), headers as never)).status).toBe(204);
  });
});

describe("what breaks a rule is named with 400, and the rest is stored", () => {
  const good: Series = { labels: { ...up(), __name__: "good" }, samples: [[now, 1]] };
  const long = (length: number) => "x".repeat(length);
  const many = Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`k${10 + i}`, "v"]));
  const cases: [string, Series["labels"], string][] = [
    ["no name", { job: "node" }, "there must be a label __name__"],
    ["an empty name", { __name__: "", job: "node" }, "there must be a label __name__"],
    ["no labels", {}, "there must be a label __name__"],
    [
      "a label twice, apart from each other",
      [
        ["a", "1"],
        ["__name__", "up"],
        ["a", "2"],
      ],
      'the label "a" comes twice',
    ],
    [
      "a label twice",
      [
        ["__name__", "up"],
        ["a", "1"],
        ["a", "1"],
      ],
      'the label "a" comes twice',
    ],
    [
      "a label without a name",
      [
        ["", "1"],
        ["__name__", "up"],
      ],
      "the name of a label must not be empty",
    ],
    ["a long name", { __name__: long(256) }, "the name of the metric may have at most 255 characters"],
    ["a control character", { __name__: "a\nb" }, "the name of the metric must not contain control characters"],
    ["a long label", { ...up(), [`k${long(255)}`]: "1" }, "the name of a label may have at most 255 characters"],
    ["a long value", { ...up(), k: long(1025) }, "the value of a label may have at most 1024 characters"],
    ["NUL", { ...up(), k: "a\0b" }, "labels must not contain NUL"],
    [
      "many labels",
      { ...up(), ...many },
      "a series may have at most 64 labels beside those of its entity; this one has 65",
    ],
  ];
  const sorted = (labels: Series["labels"]) =>
    Array.isArray(labels) ? labels : Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));

  test.each(cases)("%s", async (_, labels, rule) => {
    for (const version of [1, 2]) {
      const { write, write2, shown } = await world();
      const answer = await (version === 1 ? write : write2)({ labels: sorted(labels), samples: [[now, 1]] }, good);
      expect(answer.status).toBe(400);
      expect(answer.body).toContain(rule);
      expect(headersOf(answer.headers)).toEqual(version === 1 ? {} : written(1));
      expect(await shown()).toEqual(["good{} 1"]);
    }
  });

  test.each([
    ["infinity", [now, Number.POSITIVE_INFINITY], "the value must be finite"],
    ["negative infinity", [now, Number.NEGATIVE_INFINITY], "the value must be finite"],
    ["too old", [now - 90 * 24 * hourMs, 1], "must not be more than 24 h old"],
    ["too far ahead", [now + 90 * 24 * hourMs, 1], "must not be more than 600 s ahead"],
    ["seconds", [1_700_000_000, 1], "looks like seconds"],
    ["the least time", [-(2 ** 53), 1], "must not be more than 24 h old"],
  ] as [string, [number, number], string][])("a sample: %s", async (_, sample, rule) => {
    const { write2, shown } = await world();
    const answer = await write2({ labels: up(), samples: [[now, 2], sample] }, good);
    expect([answer.status, headersOf(answer.headers)]).toEqual([400, written(2)]);
    expect(answer.body).toContain(rule);
    expect(await shown()).toEqual(["good{} 1", "up{} 2"]);
  });

  test("at most ten series are named", async () => {
    const { write } = await world();
    const bad = Array.from({ length: 15 }, (_, i): Series => ({ labels: { a: `${i}` }, samples: [[now, 1]] }));
    const { body } = await write(...bad);
    expect(body.match(/there must be a label/g)).toHaveLength(10);
    expect(body).toContain("and 5 more series");
  });
});

describe("what can never succeed is refused whole, and nothing of it is stored", () => {
  const bytes = bytesOf1([{ labels: up(), samples: [[now, 1]] }]);
  test.each([
    ["another compression", { ...version1, "content-encoding": "gzip" }, packed(bytes), 415],
    ["another type", { ...version1, "content-type": "application/json" }, packed(bytes), 415],
    ["another message", { ...version1, "content-type": "application/x-protobuf;proto=x.Y" }, packed(bytes), 415],
    ["no body", version1, Buffer.alloc(0), 400],
    ["no snappy", version1, Buffer.from(bytes), 400],
    ["snappy that is cut off", version1, packed(bytes).subarray(0, -3), 400],
    ["a message that is cut off", version1, packed(bytes.subarray(0, -3)), 400],
    ["a good series before a broken one", version1, packed(Buffer.concat([bytes, Buffer.from([0x0a, 0x05, 1])])), 400],
    ["a length beyond 16 MiB", version1, Buffer.from([0x81, 0x80, 0x80, 0x08, 0]), 413],
    ["a length of 4 GiB", version1, Buffer.from([0xff, 0xff, 0xff, 0xff, 0x0f, 0]), 413],
    ["a length that is none", version1, Buffer.alloc(6, 0xff), 400],
    ["too many series", version1, packed(Buffer.alloc(2 * 50_001, Buffer.from([0x0a, 0]))), 413],
  ] as [string, Record<string, string>, Buffer, number][])("%s", async (_, headers, body, status) => {
    const { call, shown } = await world();
    const answer = await call("POST", path, body, headers);
    expect([answer.status, String(answer.headers["content-type"])]).toEqual([status, "text/plain; charset=utf-8"]);
    expect(await shown()).toEqual([]);
  });

  test.each(httpVersions)("a body beyond 16 MiB, over HTTP/%s", async (version) => {
    const { tenant } = await world();
    const headers = { ...tenant.headers, ...version1 };
    const answer = await raw(server, version, { path, headers, body: [Buffer.alloc(17 * 1024 * 1024)] });
    expect(answer.status).toBe(413);
  });

  test("another method, no key", async () => {
    const { call } = await world();
    expect(await call("GET", path, "")).toMatchObject({
      status: 405,
      body: "Prometheus writes samples to this path with POST: this path takes POST, OPTIONS, not GET\n",
    });
    expect((await tool(server, {})("POST", path, packed(bytes), version1)).status).toBe(401);
  });
});

test.each([1, 2])("a request of too many samples is told so, version %d, of known series too", async (version) => {
  const { shown, ...to } = await world();
  const write = version === 1 ? to.write : to.write2;
  expect((await write({ labels: up(), samples: [[now, 1]] })).status).toBe(204);
  const samples = Array.from({ length: 50_001 }, (_, i): [number, number] => [now + i, 2]);
  const { status, body } = await write({ labels: up(), samples });
  expect([status, body]).toEqual([413, expect.stringContaining("a request may have at most 50000 samples")]);
  expect(await shown()).toEqual(["up{} 1"]);
});

describe("order and repetition of samples mean nothing", () => {
  const minute = 60_000;
  const series = (...samples: [number, number][]): Series => ({ labels: up(), samples });
  const cases: [string, Series[][], number[]][] = [
    ["a request twice", [[series([now, 1])], [series([now, 1])]], [1]],
    ["a sample twice in a request", [[series([now, 1], [now, 1])]], [1]],
    ["a time again with another value: the last one counts", [[series([now, 1])], [series([now, 2])]], [2]],
    ["a time twice in a request: the last one counts", [[series([now, 1], [now, 2])]], [2]],
    ["backwards in a request", [[series([now + minute, 2], [now, 1])]], [1, 2]],
    ["backwards in two requests", [[series([now + minute, 2])], [series([now, 1])]], [1, 2]],
    ["a series twice in a request", [[series([now, 1]), series([now + minute, 2])]], [1, 2]],
    ["between two that are there", [[series([now, 1], [now + minute, 3])], [series([now + minute / 2, 2])]], [1, 2, 3]],
    ["after the mark of its end", [[series([now, 1], [now + 1, Number.NaN])], [series([now + minute, 2])]], [1, 2]],
    ["millisecond after millisecond", [[series([now, 1], [now + 1, 2], [now + 2, 3])]], [1, 2, 3]],
    ["20 hours ago", [[series([now, 2])], [series([now - 20 * hourMs, 1])]], [2]],
  ];
  test.each(cases)("%s", async (_, requests, values) => {
    for (const version of ["write", "write2"] as const) {
      const { stored, ...to } = await world();
      for (const request of requests) expect((await to[version](...request)).status).toBe(204);
      expect(await stored("job", "node", "NONE")).toMatchObject([{ name: "up", values }]);
    }
  });
});

describe("values are stored as they came", () => {
  test.each([0, -0, 1, -1, 0.1, 5e-324, Number.MAX_VALUE, Number.MIN_SAFE_INTEGER, 2 ** 63])("%d", async (value) => {
    const { write, stored } = await world();
    expect((await write({ labels: up(), samples: [[now, value]] })).status).toBe(204);
    expect((await stored("job", "node", "NONE"))[0]?.values).toEqual([value]);
  });
});

describe("histograms", () => {
  const h = (...histograms: [number, number, number][]): Series => ({ labels: { ...up(), __name__: "h" }, histograms });
  test.each([
    ["without values", h([now, 0, 0]), 204, 1, ["h_count{} 0", "h_sum{} 0"]],
    ["that has ended", h([now, 3, Number.NaN]), 204, 1, []],
    ["of an infinite sum", h([now, 3, Number.POSITIVE_INFINITY]), 400, 0, []],
    [
      "with samples beside it",
      { ...h([now, 3, 6]), samples: [[now, 1]] } as Series,
      204,
      1,
      ["h{} 1", "h_count{} 3", "h_sum{} 6"],
    ],
    ["too old", h([now - 90 * 24 * hourMs, 3, 6]), 400, 0, []],
    ["one of two is too old", h([now, 3, 6], [now - 90 * 24 * hourMs, 3, 6]), 400, 1, ["h_count{} 3", "h_sum{} 6"]],
  ] as [string, Series, number, number, string[]][])("%s", async (_, series, status, histograms, all) => {
    const { write2, shown } = await world();
    const answer = await write2(series);
    expect([answer.status, answer.headers["x-prometheus-remote-write-histograms-written"]]).toEqual([
      status,
      String(histograms),
    ]);
    expect(await shown()).toEqual(all);
  });
});

describe("one series that cannot be taken fails alone, and the others are stored and counted", () => {
  const good: Series = { labels: { ...up(), __name__: "good" }, samples: [[now, 1]] };
  const cases1: [string, Uint8Array, string][] = [
    [
      "130 labels",
      bytesOf1([{ labels: Array.from({ length: 130 }, (_, i) => [`a${100 + i}`, "b"]), samples: [[now, 1]] }]),
      "a series may have at most 129 labels",
    ],
    [
      "100,001 samples",
      bytesOf1([{ labels: up(), samples: Array.from({ length: 100_001 }, (_, i) => [now + i, 1]) }]),
      "a series may have at most 100000 points",
    ],
    [
      "1,001 exemplars",
      bytesOf1([{ labels: up(), samples: [[now, 1]], exemplars: 1001 }]),
      "a series may have at most 1000 fields beside its labels and points",
    ],
    [
      "a value that is no UTF-8",
      spoilt(bytesOf1([{ labels: up({ k: "spoil" }), samples: [[now, 1]] }])),
      "labels must be UTF-8",
    ],
    [
      "a name that is no UTF-8",
      spoilt(bytesOf1([{ labels: up({ spoil: "v" }), samples: [[now, 1]] }])),
      "labels must be UTF-8",
    ],
    [
      "1,001 deltas in a histogram",
      bytesOf1([{ labels: up(), histograms: [[now, 1, 1]], deltas: 1001 }]),
      "a histogram may have at most 1000 spans, deltas, counts or bounds of a kind",
    ],
  ];
  test.each(cases1)("version 1: %s", async (_, broken, rule) => {
    const { send, shown } = await world();
    const answer = await send(
      Buffer.concat([bytesOf1([good]), broken, bytesOf1([{ ...good, samples: [[now + 1, 2]] }])]),
    );
    expect(answer.status).toBe(400);
    expect(answer.body).toContain(rule);
    expect(await shown()).toEqual(["good{} 2"]);
  });

  const symbols = ["", "__name__", "good", "job", "node", "x".repeat(5000), "k"];
  const labelsRefs = [1, 2, 3, 4];
  const samples = [{ value: 1, timestamp: BigInt(now) }];
  const cases2: [string, NonNullable<MessageInitShape<typeof RequestSchema>["timeseries"]>[number], string][] = [
    ["a place that no symbol has", { labelsRefs: [...labelsRefs, 6, 9], samples }, "there is no symbol 9, only 7"],
    ["help that no symbol has", { labelsRefs, samples, metadata: { helpRef: 9 } }, "there is no symbol 9, only 7"],
    ["unit that no symbol has", { labelsRefs, samples, metadata: { unitRef: 7 } }, "there is no symbol 7, only 7"],
    [
      "100,001 samples",
      { labelsRefs, samples: Array.from({ length: 100_001 }, () => ({ timestamp: BigInt(now) })) },
      "a series may have at most 100000 points",
    ],
  ];
  test.each(cases2)("version 2: %s", async (_, broken, rule) => {
    const { send, shown } = await world();
    const other = { labelsRefs, samples: [{ value: 2, timestamp: BigInt(now + 1) }] };
    const timeseries = [{ labelsRefs, samples }, broken, other];
    const answer = await send(toBinary(RequestSchema, create(RequestSchema, { symbols, timeseries })), version2);
    expect([answer.status, headersOf(answer.headers)]).toEqual([400, written(2)]);
    expect(answer.body).toContain(rule);
    expect(await shown()).toEqual(["good{} 2"]);
  });

  test("version 2: a symbol that is no UTF-8 fails the series that use it as a label, and is never merged with another", async () => {
    const { send, shown } = await world();
    const texts = ["", "__name__", "good", "job", "node", "k", "spoil", "\ufffd\ufffd\ufffd\ufffd\ufffd"];
    const timeseries = [
      { labelsRefs: [...labelsRefs, 5, 6], samples },
      { labelsRefs: [...labelsRefs, 5, 7], samples },
      { labelsRefs, samples, metadata: { helpRef: 6 } },
    ];
    const bytes = spoilt(toBinary(RequestSchema, create(RequestSchema, { symbols: texts, timeseries })));
    const answer = await send(bytes, version2);
    expect([answer.status, headersOf(answer.headers)]).toEqual([400, written(2)]);
    expect(answer.body).toContain("labels must be UTF-8");
    expect(await shown()).toEqual(["good{} 1", 'good{"k":"\ufffd\ufffd\ufffd\ufffd\ufffd"} 1']);
  });

  test("a long text that no label uses is no fault", async () => {
    const { send, shown } = await world();
    const timeseries = [{ labelsRefs, samples, metadata: { helpRef: 5 } }];
    const bytes = toBinary(
      RequestSchema,
      create(RequestSchema, { symbols: [...symbols, "y".repeat(100_000)], timeseries }),
    );
    expect((await send(bytes, version2)).status).toBe(204);
    expect(await shown()).toEqual(["good{} 1"]);
  });
});

describe("a field of another wire type is an error, and nothing of the request is stored", () => {
  const label = (name: string, value: string) => [
    0x0a,
    4 + name.length + value.length,
    0x0a,
    name.length,
    ...Buffer.from(name),
    0x12,
    value.length,
    ...Buffer.from(value),
  ];
  const labels = [...label("__name__", "up"), ...label("job", "node")];
  const good = bytesOf1([{ labels: up(), samples: [[now, 1]] }]);
  // prometheus/write-request.test.ts has each field.
  test("also of a later series", async () => {
    const { send, shown } = await world();
    const series = [...labels, 0x10, 1];
    const answer = await send(Buffer.concat([good, Buffer.from([0x0a, series.length, ...series])]));
    expect(answer.status).toBe(400);
    expect(answer.body).toContain("has the wrong wire type");
    expect(await shown()).toEqual([]);
  });

  test("an unknown field is passed over, whatever its type", async () => {
    const { send, shown } = await world();
    const series = [...labels, 0x78, 1, 0x7a, 2, 0, 0, 0x12, 0];
    const answer = await send(Buffer.concat([good, Buffer.from([0x7a, 0, 0x0a, series.length, ...series])]));
    // The empty sample is as old as time.
    expect([answer.status, answer.body]).toEqual([400, expect.stringContaining("h old")]);
    expect(await shown()).toEqual(["up{} 1"]);
  });
});

test("50,000 samples of the longest labels that there may be, named by 64 references each, are stored", async () => {
  const { send, tenant } = await world();
  const names = Array.from({ length: 31 }, (_, i) => `k${10 + i}`.padEnd(255, "x"));
  const symbols = ["", "__name__", "up", ...names, "v".repeat(1024)];
  const labelsRefs = [1, 2, ...names.flatMap((_, i) => [3 + i, symbols.length - 1])];
  const series = toBinary(
    RequestSchema,
    create(RequestSchema, { timeseries: [{ labelsRefs, samples: [{ value: 1, timestamp: BigInt(now) }] }] }),
  );
  const bytes = Buffer.concat([
    toBinary(RequestSchema, create(RequestSchema, { symbols })),
    Buffer.alloc(50_000 * series.length, series),
  ]);
  const answer = await send(bytes, version2);
  expect([answer.status, headersOf(answer.headers)]).toEqual([204, written(50_000)]);
  const [row] = await server.database.sql`select count(*)::int as count from series where tenant_id = ${tenant.id}`;
  expect(row).toEqual({ count: 1 });
});

test("new series whose labels exceed 4 MiB in one request of version 2 fail, and are stored when they are sent again", async () => {
  const { send, tenant } = await world();
  const names = Array.from({ length: 30 }, (_, i) => `k${10 + i}`);
  const symbols = [
    "",
    "__name__",
    "up",
    ...names,
    "v".repeat(1024),
    "z",
    ...Array.from({ length: 300 }, (_, i) => `${i}`),
  ];
  const value = 3 + names.length;
  const timeseries = Array.from({ length: 300 }, (_, i) => ({
    labelsRefs: [1, 2, ...names.flatMap((_, place) => [3 + place, value]), value + 1, value + 2 + i],
    samples: [{ value: 1, timestamp: BigInt(now) }],
  }));
  const bytes = toBinary(RequestSchema, create(RequestSchema, { symbols, timeseries }));
  const counts: number[] = [];
  for (let i = 0; i < 3; i++) {
    const { status, body, headers } = await send(bytes, version2);
    const stored = Number(headers["x-prometheus-remote-write-samples-written"]);
    counts.push(stored);
    expect(status).toBe(stored === 300 ? 204 : 400);
    if (status === 400) expect(body).toContain("the labels of new series in a request may have at most 4194304 bytes");
  }
  const each = 30 * (3 + 1024) + 12;
  expect(counts).toEqual([Math.floor(4_194_304 / each), 2 * Math.floor(4_194_304 / each), 300]);
  const [row] = await server.database.sql`select count(*)::int as count from series where tenant_id = ${tenant.id}`;
  expect(row).toEqual({ count: 300 });
});

describe("what version 2 refuses whole says that nothing was written", () => {
  const good = { labelsRefs: [1, 2], samples: [{ value: 1, timestamp: BigInt(now) }] };
  const bytes = (init: MessageInitShape<typeof RequestSchema>) =>
    packed(toBinary(RequestSchema, create(RequestSchema, init)));
  const symbols = ["", "__name__", "up"];
  const cases: [string, Buffer, Record<string, string>, number][] = [
    ["no symbols", bytes({ timeseries: [good] }), {}, 400],
    ["no snappy", Buffer.from("x"), {}, 400],
    ["another compression", bytes({ symbols, timeseries: [good] }), { "content-encoding": "gzip" }, 415],
    ["a key that is none", bytes({ symbols, timeseries: [good] }), { authorization: "Bearer x" }, 401],
    [
      "too many series",
      packed(Buffer.concat([Buffer.from([0x22, 0]), Buffer.alloc(2 * 50_001, Buffer.from([0x2a, 0]))])),
      {},
      413,
    ],
  ];
  test.each(cases)("%s", async (_, body, more, status) => {
    const { call, shown } = await world();
    const answer = await call("POST", path, body, { ...version2, ...more });
    expect([answer.status, headersOf(answer.headers)]).toEqual([status, written(0)]);
    expect(await shown("source", "prometheus")).toEqual([]);
  });
});

test("2,000 series in one request, and again: each is there once", async () => {
  const { write, tenant } = await world();
  const many = Array.from({ length: 2000 }, (_, i): Series => ({ labels: up({ n: `${i}` }), samples: [[now, i]] }));
  for (let i = 0; i < 2; i++) expect((await write(...many)).status).toBe(204);
  const [row] = await server.database.sql`select count(*)::int as count from series where tenant_id = ${tenant.id}`;
  expect(row).toEqual({ count: 2000 });
});

test("a client from npm is understood", async () => {
  const { tenant, shown } = await world();
  const labels = { __name__: "up", instance: "a:9100", job: "node" };
  const headers = { authorization: `Bearer ${tenant.headers["service-api-key"]}` };
  const series = { labels, samples: [{ value: 3, timestamp: now }] };
  expect(await pushTimeseries(series, { url: server.url + path, headers, fetch: fetch as never })).toMatchObject({
    status: 204,
  });
  expect(await shown()).toEqual(["up{} 3"]);
});
