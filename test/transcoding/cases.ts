import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { reasonDetail } from "../support/reasons.ts";

/** One request to the foreign library and what comes of it. */
export interface Case {
  /** Method and raw target. */
  send: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  status: number;
  /** Which RPC was called; left out: not looked at. null: none. */
  rpc?: string | null;
  /** What the handler got, in part. */
  input?: object;
  /** What came back, in part (a whole string for bodies that are no JSON). */
  answer?: object | string;
  /** Headers of the answer; null means absent. */
  answers?: Record<string, string | RegExp | null>;
  /** The field path in google.rpc.BadRequest. */
  field?: string;
  /** What the message says, in part. */
  message?: string | RegExp;
}

/** A rule, in words, with the requests that show it. */
export interface Rule {
  rule: string;
  cases: Case[];
}

const json = { "content-type": "application/json" };
const echo = (body: string, rest: Omit<Case, "send" | "body" | "headers">): Case => ({
  send: "POST /v1/echo",
  headers: json,
  body,
  ...rest,
});
/** A body that reaches the handler as this input. */
const reads = (body: string, input: object): Case => echo(body, { status: 200, rpc: "echo", input });
/** A body that is refused, naming this field and saying this. */
const refuses = (body: string, field: string, message: string | RegExp): Case =>
  echo(body, { status: 400, rpc: null, answer: { code: 3 }, field, message });

// Where it is cut off, its last four bytes no longer say how long the text is.
const damaged = gzipSync(JSON.stringify({ fString: Array.from({ length: 500 }, (_, i) => (i * 7919) % 1000).join() }));

export const paths: Rule[] = [
  {
    rule: "Literals are pchar and compared decoded.",
    cases: [
      { send: "GET /v1/books", status: 200, rpc: "listBooks" },
      { send: "GET /v1/b%6Foks", status: 200, rpc: "listBooks" },
      { send: "GET /%761/books", status: 200, rpc: "listBooks" },
      { send: "GET /v1/Books", status: 404, answer: { code: 5 } },
      { send: "GET /v1/books%2F", status: 404 },
    ],
  },
  {
    rule: "{x} and * never match an empty segment; a trailing slash is another path (404).",
    cases: [
      { send: "GET /v1/things/", status: 404, rpc: null, answer: { code: 5 } },
      { send: "GET /v1/books/", status: 404 },
      { send: "GET /v1//books", status: 404 },
      { send: "GET /v1/shelves//books", status: 404 },
      { send: "GET /v1/things/a/", status: 404 },
      { send: "GET /v1/files/a/", status: 404 },
      { send: "GET /v1/files/a//b", status: 404 },
    ],
  },
  {
    rule: "{x=**} matches zero or more segments.",
    cases: [
      { send: "GET /v1/files", status: 200, rpc: "getFile", input: { path: "" } },
      { send: "GET /v1/files/a", status: 200, input: { path: "a" } },
      { send: "GET /v1/files/a/b/c.txt", status: 200, input: { path: "a/b/c.txt" } },
      { send: "GET /v1/files/a/b:preview", status: 200, rpc: "previewFile", input: { path: "a/b" } },
    ],
  },
  {
    rule: "A variable of one segment is decoded once, whole (%2F and %3A in it are data).",
    cases: [
      { send: "GET /v1/things/a%2Fb%3Ac", status: 200, rpc: "getThing", input: { id: "a/b:c" } },
      { send: "GET /v1/things/a%252Fb", status: 200, input: { id: "a%2Fb" } },
      { send: "GET /v1/things/%E2%82%AC", status: 200, input: { id: "€" } },
      { send: "POST /v1/things/a%3Amove", headers: json, body: "{}", status: 501 },
    ],
  },
  {
    rule: "One of many segments keeps %2F as it came.",
    cases: [
      { send: "GET /v1/files/a%2Fb/c%20d", status: 200, input: { path: "a%2Fb/c d" } },
      { send: "GET /v1/files/a%2fb", status: 200, input: { path: "a%2fb" } },
      { send: "GET /v1/shelves/s%2F1/books/b%3A2", status: 200, input: { name: "shelves/s%2F1/books/b:2" } },
    ],
  },
  {
    rule: "+ is a plus.",
    cases: [{ send: "GET /v1/things/a+b", status: 200, input: { id: "a+b" } }],
  },
  {
    rule: "Precedence segment by segment: literal, *, **; then verb before none.",
    cases: [
      { send: "GET /v1/missing/a", status: 501, rpc: "missing" },
      { send: "GET /v1/things/a:move", status: 200, rpc: "getThing", input: { id: "a:move" } },
      { send: "POST /v1/things/a:move", headers: json, body: "{}", status: 200, rpc: "moveBook", input: { id: "a" } },
    ],
  },
  {
    rule: "A raw : followed by a verb registered there is the verb (longest first); any other colon is data.",
    cases: [
      { send: "GET /v1/things/a:b", status: 200, rpc: "getThing", input: { id: "a:b" } },
      { send: "GET /v1/things/:", status: 200, input: { id: ":" } },
      {
        send: "POST /v1/things/a:b:move",
        headers: json,
        body: "{}",
        status: 200,
        rpc: "moveBook",
        input: { id: "a:b" },
      },
      { send: "GET /v1/files/a:preview", status: 200, rpc: "previewFile", input: { path: "a" } },
      { send: "GET /v1/files/a:previews", status: 200, rpc: "getFile", input: { path: "a:previews" } },
      { send: "GET /v1/files/a%3Apreview", status: 200, rpc: "getFile", input: { path: "a:preview" } },
      { send: "GET /v1/files/a:previe%77", status: 200, rpc: "previewFile", input: { path: "a" } },
      { send: "POST /v1/books:search", headers: json, body: "{}", status: 200, rpc: "searchBooks" },
      { send: "POST /v1/books:nothing", headers: json, body: "{}", status: 404 },
    ],
  },
  {
    rule: "Malformed escape or non-UTF-8: 400 naming the variable.",
    cases: [
      { send: "GET /v1/things/a%", status: 400, rpc: null, answer: { code: 3 }, field: "id" },
      { send: "GET /v1/things/a%zz", status: 400, field: "id" },
      { send: "GET /v1/things/%ff", status: 400, field: "id" },
      { send: "GET /v1/files/a/%c3", status: 400, field: "path" },
    ],
  },
  {
    rule: "Integers are decimal only, range-checked.",
    cases: [
      {
        send: "GET /v1/typed/-7/18446744073709551615/true/COLOR_RED/AQI/1.5",
        status: 200,
        input: { i32: -7, u64: 18446744073709551615n, flag: true, color: 1, data: new Uint8Array([1, 2]), ratio: 1.5 },
      },
      { send: "GET /v1/typed/1/1/false/2/AQI%3D/-Infinity", status: 200, input: { color: 2, ratio: -Infinity } },
      { send: "GET /v1/typed/0x10/1/true/0/AQI/1", status: 400, field: "i32" },
      { send: "GET /v1/typed/1e3/1/true/0/AQI/1", status: 400, field: "i32" },
      { send: "GET /v1/typed/+1/1/true/0/AQI/1", status: 400, field: "i32" },
      { send: "GET /v1/typed/1.0/1/true/0/AQI/1", status: 400, field: "i32" },
      { send: "GET /v1/typed/2147483648/1/true/0/AQI/1", status: 400, field: "i32" },
      { send: "GET /v1/typed/1/-1/true/0/AQI/1", status: 400, field: "u64" },
      { send: "GET /v1/typed/1/18446744073709551616/true/0/AQI/1", status: 400, field: "u64" },
      { send: "GET /v1/typed/1/1/TRUE/0/AQI/1", status: 400, field: "flag" },
      { send: "GET /v1/typed/1/1/true/9/AQI/1", status: 400, field: "color" },
      { send: "GET /v1/typed/1/1/true/RED/AQI/1", status: 400, field: "color", message: "COLOR_RED" },
      { send: "GET /v1/typed/1/1/true/0/A/1", status: 400, field: "data" },
      { send: "GET /v1/typed/1/1/true/0/AQI/1_0", status: 400, field: "ratio" },
    ],
  },
];

export const queries: Rule[] = [
  {
    rule: "Proto or JSON names; a.b.c through singular messages.",
    cases: [
      { send: "GET /v1/books?page_size=2", status: 200, input: { pageSize: 2 } },
      { send: "GET /v1/books?pageSize=2", status: 200, input: { pageSize: 2 } },
      {
        send: "GET /v1/books?author.given_name=A&author.familyName=B",
        status: 200,
        input: { author: { givenName: "A", familyName: "B" } },
      },
      {
        send: "GET /v1/echo?fMessage.fMessage.fInt32=7",
        status: 200,
        input: { fMessage: { fMessage: { fInt32: 7 } } },
      },
      { send: "GET /v1/echo?rMessage.fInt32=7", status: 400, field: "rMessage.fInt32" },
      { send: "GET /v1/echo?fString.x=7", status: 400, field: "fString.x" },
    ],
  },
  {
    rule: "Repeat the key for repeated fields (no comma split).",
    cases: [
      { send: "GET /v1/books?tags=a&tags=b,c&tags=", status: 200, input: { tags: ["a", "b,c", ""] } },
      {
        send: "GET /v1/echo?rInt64=1&rInt64=-2&rEnum=COLOR_RED&rEnum=2",
        status: 200,
        input: { rInt64: [1n, -2n], rEnum: [1, 2] },
      },
    ],
  },
  {
    rule: "f[key]=v for maps of scalars.",
    cases: [
      {
        send: "GET /v1/echo?mStringString[a]=1&mStringString[b%20c]=2",
        status: 200,
        input: { mStringString: { a: "1", "b c": "2" } },
      },
      { send: "GET /v1/echo?m_int32_int64[7]=8", status: 200, input: { mInt32Int64: { 7: 8n } } },
      { send: "GET /v1/echo?mInt32Int64[x]=8", status: 400, field: "mInt32Int64[x]" },
      { send: "GET /v1/echo?mInt32Int64[1]=8&mInt32Int64[1]=9", status: 400, field: "mInt32Int64[1]" },
      { send: "GET /v1/echo?mStringString=8", status: 400, field: "mStringString" },
      { send: "GET /v1/echo?fString[a]=8", status: 400, field: "fString[a]" },
      { send: "GET /v1/echo?mStringMessage[a]=8", status: 400, field: "mStringMessage[a]" },
    ],
  },
  {
    rule: "Enums by name or declared number; true/false; wrappers, Timestamp, Duration as in ProtoJSON; FieldMask in either case.",
    cases: [
      { send: "GET /v1/echo?fEnum=COLOR_GREEN", status: 200, input: { fEnum: 2 } },
      { send: "GET /v1/echo?fEnum=2", status: 200, input: { fEnum: 2 } },
      { send: "GET /v1/echo?fEnum=7", status: 400, field: "fEnum" },
      { send: "GET /v1/echo?fBool=true&oBool=false", status: 200, input: { fBool: true, oBool: false } },
      { send: "GET /v1/echo?fBool=1", status: 400, field: "fBool" },
      {
        send: "GET /v1/echo?wInt64=5&wString=x&wBool=true",
        status: 200,
        input: { wInt64: 5n, wString: "x", wBool: true },
      },
      {
        send: "GET /v1/echo?timestamp=2024-02-29T00:00:00Z",
        status: 200,
        input: { timestamp: { seconds: 1709164800n, nanos: 0 } },
      },
      { send: "GET /v1/echo?timestamp=2023-02-29T00:00:00Z", status: 400, field: "timestamp" },
      { send: "GET /v1/echo?duration=-1.5s", status: 200, input: { duration: { seconds: -1n, nanos: -500000000 } } },
      { send: "GET /v1/echo?fieldMask=aB.cD,x_y", status: 200, input: { fieldMask: { paths: ["a_b.c_d", "x_y"] } } },
      { send: "GET /v1/echo?struct=1", status: 400, field: "struct" },
      { send: "GET /v1/echo?fMessage=1", status: 400, field: "fMessage" },
    ],
  },
  {
    rule: "?flag is the empty value; + is a space.",
    cases: [
      { send: "GET /v1/echo?fString", status: 200, input: { fString: "" } },
      { send: "GET /v1/echo?oString", status: 200, input: { oString: "" } },
      { send: "GET /v1/echo?fString=a+b%2Bc", status: 200, input: { fString: "a b+c" } },
      { send: "GET /v1/echo?fBool", status: 400, field: "fBool" },
      { send: "GET /v1/echo?", status: 200, input: { fString: "" } },
      { send: "GET /v1/echo?&&fString=a&", status: 200, input: { fString: "a" } },
      { send: "GET /v1/echo?fString=%zz", status: 400, field: "fString" },
      { send: "GET /v1/echo?fString=a?b=c", status: 200, input: { fString: "a?b=c" } },
    ],
  },
  {
    rule: "A path's field in the query: 400. Twice for a singular field, two members of one oneof, an unknown name: 400 naming it.",
    cases: [
      { send: "GET /v1/shelves/a/books?shelf=a", status: 400, field: "shelf" },
      { send: "GET /v1/books?pageSize=1&page_size=2", status: 400, field: "page_size", message: "twice" },
      { send: "GET /v1/echo?cString=a&cInt64=1", status: 400, field: "cInt64", message: "cString" },
      { send: "GET /v1/books?pagSize=1", status: 400, field: "pagSize", message: 'did you mean "pageSize"?' },
      { send: "GET /v1/books?author.givenNme=1", status: 400, field: "author.givenNme", message: "givenName" },
      { send: "GET /v1/books?qqqqqq=1", status: 400, field: "qqqqqq", message: /unknown query parameter$/ },
    ],
  },
  {
    rule: 'With body: "*" any query parameter is unknown; a field of the body is not for the query.',
    cases: [
      { send: "POST /v1/echo?fInt32=1", headers: json, body: "{}", status: 400, field: "fInt32" },
      {
        send: "POST /v1/shelves/s/books?book_id=7",
        headers: json,
        body: "{}",
        status: 200,
        input: { shelf: "s", bookId: "7" },
      },
      { send: "POST /v1/shelves/s/books?book.title=7", headers: json, body: "{}", status: 400, field: "book.title" },
    ],
  },
];

export const bodies: Rule[] = [
  {
    rule: "application/json, application/*+json or none; charset absent or utf-8 (any case, quoted); else 415 (code 3).",
    cases: [
      ...[
        "application/json",
        "APPLICATION/JSON",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        'application/json; charset="Utf-8"',
        "application/json; charset=utf8",
        "application/vnd.foreign.v1+json",
        "application/json; profile=x; charset=utf-8",
      ].map((type): Case => ({ send: "POST /v1/echo", headers: { "content-type": type }, body: "{}", status: 200 })),
      { send: "POST /v1/echo", body: "{}", status: 200 },
      ...[
        "text/plain",
        "text/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=latin1",
        "application/json; charset=utf-16",
        "application/jsonx",
        "application/proto",
      ].map(
        (type): Case => ({
          send: "POST /v1/echo",
          headers: { "content-type": type },
          body: "{}",
          status: 415,
          rpc: null,
          answer: { code: 3 },
        }),
      ),
    ],
  },
  {
    rule: "gzip, br, deflate accepted; other encodings 415.",
    cases: [
      ...(
        [
          ["gzip", gzipSync],
          ["GZIP", gzipSync],
          ["br", brotliCompressSync],
          ["deflate", deflateSync],
          ["deflate", deflateRawSync],
        ] as const
      ).map(
        ([encoding, pack]): Case => ({
          send: "POST /v1/echo",
          headers: { ...json, "content-encoding": encoding },
          body: pack('{"fInt32":7}'),
          status: 200,
          input: { fInt32: 7 },
        }),
      ),
      { send: "POST /v1/echo", headers: { ...json, "content-encoding": "identity" }, body: "{}", status: 200 },
      {
        send: "POST /v1/echo",
        headers: { ...json, "content-encoding": "zstd" },
        body: "{}",
        status: 415,
        answer: { code: 3 },
      },
      { send: "POST /v1/echo", headers: { ...json, "content-encoding": "gzip, br" }, body: "{}", status: 415 },
      {
        send: "POST /v1/echo",
        headers: { ...json, "content-encoding": "gzip" },
        body: "{}",
        status: 400,
        answer: { code: 3 },
      },
      { send: "POST /v1/echo", headers: { ...json, "content-encoding": "toString" }, body: "{}", status: 415 },
    ],
  },
  {
    rule: "Limit on Content-Length, on bytes read, and again after decompression: 413, code 8.",
    cases: [
      {
        send: "POST /v1/echo",
        headers: json,
        body: `{"fString":"${"x".repeat(70_000)}"}`,
        status: 413,
        rpc: null,
        answer: { code: 8 },
      },
      {
        send: "POST /v1/echo",
        headers: { ...json, "transfer-encoding": "chunked" },
        body: `{"fString":"${"x".repeat(70_000)}"}`,
        status: 413,
        answer: { code: 8 },
      },
      ...(
        [
          ["gzip", gzipSync],
          ["br", brotliCompressSync],
          ["deflate", deflateSync],
        ] as const
      ).map(
        ([encoding, pack]): Case => ({
          send: "POST /v1/echo",
          headers: { ...json, "content-encoding": encoding },
          body: pack(`{"fString":"${"x".repeat(10_000_000)}"}`),
          status: 413,
          answer: { code: 8 },
        }),
      ),
      echo(`{"fString":"${"x".repeat(65_500)}"}`, { status: 200 }),
    ],
  },
  {
    rule: "Nesting at most 100.",
    cases: [
      echo(`${'{"fMessage":'.repeat(99)}{}${"}".repeat(99)}`, { status: 200 }),
      echo(`${'{"fMessage":'.repeat(100)}{}${"}".repeat(100)}`, { status: 400, message: "100" }),
      echo(`{"value":${"[".repeat(99)}${"]".repeat(99)}}`, { status: 200 }),
      echo(`{"value":${"[".repeat(100)}${"]".repeat(100)}}`, { status: 400, message: "100" }),
      echo(`{"struct":${'{"a":'.repeat(5000)}`, { status: 400, message: "100" }),
    ],
  },
  {
    rule: "Empty body = empty message.",
    cases: [
      { send: "POST /v1/echo", status: 200, input: { fInt32: 0 } },
      { send: "POST /v1/echo", headers: json, body: "", status: 200, input: { fInt32: 0 } },
      { send: "POST /v1/shelves/s/books", status: 200, input: { shelf: "s", book: { title: "" } } },
    ],
  },
  {
    rule: "400 with message, field path and byte offset for: malformed JSON, trailing text, a top-level value that is no object.",
    cases: [
      refuses("{", "", /byte 1/),
      refuses('{"fInt32":1', "", /byte 11/),
      refuses('{"fInt32" 1}', "fInt32", /byte 10/),
      refuses('{"fInt32":1,}', "", /byte 12/),
      refuses('{"fMessage":{"rInt32":[1,]}}', "fMessage.rInt32[1]", /byte 25/),
      refuses("{'fInt32':1}", "", /byte 1/),
      refuses('{"fInt32":1} x', "", /byte 13/),
      refuses('{"fInt32":1}{}', "", /byte 12/),
      refuses("{} // comment", "", /byte 3/),
      ...["[]", "1", '"a"', "null", "true", " ", "nul"].map((text) => refuses(text, "", /object/)),
      refuses('{"fBool":tru}', "fBool", /byte 9/),
      refuses('{"fBool":trueish}', "fBool", /byte 9/),
      refuses('{"fDouble":.5}', "fDouble", /byte 11/),
      refuses('{"fDouble":5.}', "fDouble", /number/),
      refuses('{"fDouble":+5}', "fDouble", /byte 11/),
      refuses('{"fDouble":05}', "fDouble", /number/),
      refuses('{"fDouble":NaN}', "fDouble", /byte 11/),
      refuses('{"fString":"a\nb"}', "fString", /control character/),
      refuses('{"fString":"a\\xb"}', "fString", /escape/),
      refuses('{"fString":"a', "fString", /closed/),
      refuses('{"fString":"é", "fInt32":x}', "fInt32", /byte 26/),
    ],
  },
  {
    rule: "… BOM, invalid UTF-8, lone surrogates, a key twice (also as both proto and JSON name).",
    cases: [
      echo("\ufeff{}", { status: 400, message: "byte order mark" }),
      {
        send: "POST /v1/echo",
        headers: json,
        body: Buffer.from([0x7b, 0x22, 0x61, 0xff, 0x22, 0x7d]),
        status: 400,
        message: /UTF-8.*byte 3/,
      },
      {
        send: "POST /v1/echo",
        headers: json,
        body: Buffer.from('{"fString":"\xed\xa0\x80"}', "latin1"),
        status: 400,
        message: "UTF-8",
      },
      refuses('{"fString":"\\ud800"}', "fString", /surrogate.*byte 12/),
      refuses('{"fString":"\\udc00\\ud800"}', "fString", "surrogate"),
      refuses('{"fString":"\\ud83dx"}', "fString", "surrogate"),
      reads('{"fString":"\\ud83d\\ude00"}', { fString: "😀" }),
      refuses('{"fInt32":1,"fInt32":1}', "fInt32", /twice.*byte 12/),
      refuses('{"fInt32":1,"f_int32":1}', "fInt32", /twice.*byte 12/),
      refuses('{"fInt32":1,"f\\u0049nt32":1}', "fInt32", "twice"),
      refuses('{"rMessage":[{},{"fInt32":1,"fInt32":2}]}', "rMessage[1].fInt32", "twice"),
      refuses('{"mStringString":{"a":"1","a":"2"}}', 'mStringString["a"]', "twice"),
      refuses('{"mInt32Int64":{"1":"1","1.0":"2"}}', 'mInt32Int64["1.0"]', "twice"),
      refuses('{"struct":{"a":1,"a":2}}', "struct.a", "twice"),
      refuses('{"wBytes":null,"wBytes":null}', "wBytes", "twice"),
    ],
  },
  {
    rule: "… wrong types, out-of-range or inexact integers, unknown enum names.",
    cases: [
      refuses('{"fString":1}', "fString", /expected a string, found 1 .*byte 11/),
      refuses('{"fInt32":true}', "fInt32", "integer"),
      refuses('{"fInt32":[1]}', "fInt32", "a list"),
      refuses('{"fInt32":{}}', "fInt32", "an object"),
      refuses('{"fBool":"true"}', "fBool", "true or false"),
      refuses('{"fBool":1}', "fBool", "true or false"),
      refuses('{"rInt32":1}', "rInt32", "list"),
      refuses('{"rInt32":{}}', "rInt32", "list"),
      refuses('{"mStringString":[]}', "mStringString", "object"),
      refuses('{"mStringString":{"a b":1}}', 'mStringString["a b"]', "string"),
      refuses('{"mStringMessage":{"k":{"fInt32":"x"}}}', 'mStringMessage["k"].fInt32', "integer"),
      refuses('{"fMessage":[]}', "fMessage", "object"),
      refuses('{"fInt32":2147483648}', "fInt32", "from -2147483648 to 2147483647"),
      refuses('{"fInt32":-2147483649}', "fInt32", "from"),
      refuses('{"fUint32":-1}', "fUint32", "from 0"),
      refuses('{"fInt64":9223372036854775808}', "fInt64", "from"),
      refuses('{"fUint64":18446744073709551616}', "fUint64", "from"),
      refuses('{"fUint64":"-1"}', "fUint64", "from"),
      refuses('{"fInt32":1.5}', "fInt32", "fraction"),
      refuses('{"fInt64":"9007199254740993.5"}', "fInt64", "fraction"),
      refuses('{"fInt32":1e-1}', "fInt32", "fraction"),
      refuses('{"fInt32":1e99999999999}', "fInt32", "from"),
      refuses('{"fDouble":1e400}', "fDouble", "range"),
      refuses('{"fFloat":1e39}', "fFloat", "range"),
      refuses('{"fFloat":"3.5e38"}', "fFloat", "range"),
      refuses('{"value":1e400}', "value", "range"),
      refuses('{"fEnum":"COLOR_REED"}', "fEnum", 'did you mean "COLOR_RED"?'),
      refuses('{"fEnum":"GREN"}', "fEnum", 'did you mean "COLOR_GREEN"?'),
      refuses('{"fEnum":"color_red"}', "fEnum", "COLOR_RED"),
      refuses('{"fEnum":"1"}', "fEnum", "Color"),
      refuses('{"fEnum":1.5}', "fEnum", "integer"),
      reads('{"fEnum":"COLOR_RED","fAliased":"ALIASED_UNO","rEnum":[2,"COLOR_RED"]}', {
        fEnum: 1,
        fAliased: 1,
        rEnum: [2, 1],
      }),
      reads('{"fAliased":-1}', { fAliased: -1 }),
      refuses('{"cString":"a","cInt64":"1"}', "cInt64", "cString"),
      reads('{"cString":"a","cInt64":null}', { choice: { case: "cString", value: "a" } }),
    ],
  },
  {
    rule: "… unknown fields (with the nearest name).",
    cases: [
      refuses('{"fSting":1}', "fSting", /did you mean "fString"\?.*byte 1/),
      refuses('{"fMessage":{"f_strin":1}}', "fMessage.f_strin", "fString"),
      refuses('{"qqqqqqqq":1}', "qqqqqqqq", /unknown field "qqqqqqqq" /),
      refuses('{"fstring":1}', "fstring", "fString"),
      refuses('{"[foreign.v1.ext]":1}', "[foreign.v1.ext]", "unknown"),
      refuses('{"__proto__":1}', "__proto__", "unknown"),
      refuses('{"constructor":1}', "constructor", "unknown"),
    ],
  },
  {
    rule: "A body where the rule has none: 400, but Content-Length: 0 is fine.",
    cases: [
      { send: "GET /v1/books", headers: json, body: "{}", status: 400, rpc: null, answer: { code: 3 } },
      { send: "DELETE /v1/shelves/a/books/b", headers: json, body: "{}", status: 400 },
      { send: "GET /v1/books", headers: { "transfer-encoding": "chunked" }, body: "{}", status: 400 },
      { send: "GET /v1/books", headers: { "transfer-encoding": "chunked" }, body: "", status: 200 },
      { send: "GET /v1/books", headers: { "content-length": "0" }, status: 200 },
      { send: "GET /v1/books", headers: { "content-type": "text/plain", "content-length": "0" }, status: 200 },
    ],
  },
  {
    rule: "A body value for a path's field that differs from the path's: 400; equal is fine.",
    cases: [
      { send: "PUT /v1/shelves/a", headers: json, body: '{"shelf":"a"}', status: 200, input: { shelf: "a" } },
      { send: "PUT /v1/shelves/a", headers: json, body: '{"shelf":null}', status: 200, input: { shelf: "a" } },
      { send: "PUT /v1/shelves/a", headers: json, body: '{"theme":"t"}', status: 200, input: { shelf: "a" } },
      { send: "PUT /v1/shelves/a", headers: json, body: '{"shelf":"b"}', status: 400, field: "shelf" },
      { send: "PUT /v1/shelves/a", headers: json, body: '{"shelf":""}', status: 400, field: "shelf" },
      {
        send: "PATCH /v1/shelves/a/books/b",
        headers: json,
        body: '{"title":"t"}',
        status: 200,
        input: { book: { name: "shelves/a/books/b" } },
      },
      { send: "PATCH /v1/shelves/a/books/b", headers: json, body: '{"name":"shelves/a/books/b"}', status: 200 },
      { send: "PATCH /v1/shelves/a/books/b", headers: json, body: '{"name":"x"}', status: 400, field: "name" },
      { send: "PATCH /v1/shelves/a/books/b", status: 200, input: { book: { name: "shelves/a/books/b" } } },
    ],
  },
];

export const values: Rule[] = [
  {
    rule: "64-bit integers as string or number, exact to the last digit.",
    cases: [
      reads('{"fInt64":9223372036854775807,"fUint64":18446744073709551615}', {
        fInt64: 9223372036854775807n,
        fUint64: 18446744073709551615n,
      }),
      reads('{"fInt64":"-9223372036854775808","fFixed64":"18446744073709551615"}', {
        fInt64: -9223372036854775808n,
        fFixed64: 18446744073709551615n,
      }),
      reads('{"rInt64":[9007199254740993,"9007199254740993",-0,"-0"]}', {
        rInt64: [9007199254740993n, 9007199254740993n, 0n, 0n],
      }),
      reads('{"fLongText":12,"rLongText":["-5"]}', { fLongText: "12", rLongText: ["-5"] }),
    ],
  },
  {
    rule: '1e3 and 1.0 are integers, in quotes too, "0x10", " 1", "+1" are not.',
    cases: [
      reads('{"fInt32":1e3,"fInt64":"1e3","fUint32":1.0,"fUint64":"1.0","fSint32":12.50e1}', {
        fInt32: 1000,
        fInt64: 1000n,
        fUint32: 1,
        fUint64: 1n,
        fSint32: 125,
      }),
      reads('{"fInt64":9.223372036854775807E18}', { fInt64: 9223372036854775807n }),
      ...['"0x10"', '" 1"', '"1 "', '"+1"', '""', '"01"', '"1."', '"1_0"', '"١"'].flatMap((text) => [
        refuses(`{"fInt32":${text}}`, "fInt32", "integer"),
        refuses(`{"fInt64":${text}}`, "fInt64", "integer"),
      ]),
      ...['"0x10"', '" 1"', '"+1"', '""', '"Inf"', '"nan"', '"1."'].map((text) =>
        refuses(`{"fDouble":${text}}`, "fDouble", "number"),
      ),
      reads('{"fDouble":"1.5e1","rDouble":["NaN","Infinity","-Infinity",-0,1e-400]}', {
        fDouble: 15,
        rDouble: [NaN, Infinity, -Infinity, -0, 0],
      }),
    ],
  },
  {
    rule: "base64 and base64url, padded or not, never mixed.",
    cases: [
      reads('{"rBytes":["-_8=","-_8","+/8=","+/8","","AA=="]}', {
        rBytes: [...Array(4).fill(new Uint8Array([251, 255])), new Uint8Array(), new Uint8Array([0])],
      }),
      ...['"-/8="', '"A"', '"AA="', '"AA==="', '"A A="', '"AA=A"', '"!"', '"AAAA="'].map((text) =>
        refuses(`{"fBytes":${text}}`, "fBytes", "base64"),
      ),
    ],
  },
  {
    rule: "Timestamp and Duration real dates and ranges only (2021-02-30 is refused).",
    cases: [
      reads('{"timestamp":"0001-01-01T00:00:00Z"}', { timestamp: { seconds: -62135596800n, nanos: 0 } }),
      reads('{"timestamp":"9999-12-31T23:59:59.999999999Z"}', {
        timestamp: { seconds: 253402300799n, nanos: 999999999 },
      }),
      reads('{"timestamp":"2021-06-01T12:00:00.5+02:00"}', { timestamp: { seconds: 1622541600n, nanos: 500000000 } }),
      reads('{"timestamp":"2000-02-29T00:00:00Z"}', { timestamp: { seconds: 951782400n } }),
      ...[
        "2021-02-30T00:00:00Z",
        "2021-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2021-04-31T00:00:00Z",
        "2021-13-01T00:00:00Z",
        "2021-00-01T00:00:00Z",
        "2021-01-00T00:00:00Z",
        "2021-01-01T24:00:00Z",
        "2021-01-01T00:60:00Z",
        "2016-12-31T23:59:60Z",
        "2021-01-01T00:00:00",
        "2021-01-01 00:00:00Z",
        "2021-01-01",
        "2021-01-01T00:00:00z",
        "2021-01-01T00:00:00.Z",
        "2021-01-01T00:00:00.1234567890Z",
        "2021-01-01T00:00:00+24:00",
        "0000-12-31T23:59:59Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "10000-01-01T00:00:00Z",
        " 2021-01-01T00:00:00Z",
      ].map((text) => refuses(`{"timestamp":"${text}"}`, "timestamp", /.+/)),
      reads('{"duration":"315576000000s"}', { duration: { seconds: 315576000000n, nanos: 0 } }),
      reads('{"duration":"-315576000000s"}', { duration: { seconds: -315576000000n, nanos: 0 } }),
      reads('{"duration":"-0.000000001s"}', { duration: { seconds: 0n, nanos: -1 } }),
      ...[
        "315576000001s",
        "-315576000001s",
        "1",
        "1 s",
        "1.s",
        ".5s",
        "1.0000000000s",
        "+1s",
        "1s ",
        "1sx",
        "1e3s",
        "",
      ].map((text) => refuses(`{"duration":"${text}"}`, "duration", /.+/)),
    ],
  },
  {
    rule: "null = unset, an error in lists.",
    cases: [
      reads(
        '{"fInt32":null,"fString":null,"fMessage":null,"rInt32":null,"mStringString":null,"timestamp":null,"wInt64":null,"oInt64":null,"any":null}',
        {
          fInt32: 0,
          fString: "",
          rInt32: [],
          mStringString: {},
        },
      ),
      refuses('{"rInt32":[1,null]}', "rInt32[1]", "null"),
      refuses('{"rMessage":[null]}', "rMessage[0]", "null"),
      refuses('{"rWrapper":[null]}', "rWrapper[0]", "null"),
      refuses('{"mStringString":{"a":null}}', 'mStringString["a"]', "null"),
      reads('{"value":null,"rValue":[null,1],"cValue":null}', {
        value: { kind: { case: "nullValue", value: 0 } },
        rValue: [{ kind: { case: "nullValue" } }, { kind: { case: "numberValue", value: 1 } }],
        choice: { case: "cValue" },
      }),
      reads('{"struct":{"a":null},"listValue":[null],"nullValue":null,"rNull":[null]}', {
        struct: { a: null },
        rNull: [0],
      }),
    ],
  },
  {
    rule: "A field that is a list, or any JSON value, may be the whole body; Any holds its message's fields beside @type.",
    cases: [
      {
        send: "PUT /v1/echo/list",
        headers: json,
        body: '["a","b"]',
        status: 200,
        input: { rString: ["a", "b"] },
        answer: ["a", "b"],
      },
      { send: "PUT /v1/echo/list", headers: json, body: "{}", status: 400, field: "" },
      { send: "PUT /v1/echo/list", headers: json, body: '["a",1]', status: 400, field: "[1]" },
      { send: "PUT /v1/echo/value", headers: json, body: "null", status: 200, answer: "null" },
      { send: "PUT /v1/echo/value", headers: json, body: '{"a":[1]}', status: 200, answer: { a: [1] } },
      echo('{"any":{"title":"t","@type":"type.googleapis.com/foreign.v1.Book"}}', {
        status: 200,
        answer: { any: { "@type": "type.googleapis.com/foreign.v1.Book", title: "t", pages: "0" } },
      }),
      echo('{"any":{"@type":"type.googleapis.com/google.protobuf.Duration","value":"1s"}}', {
        status: 200,
        answer: { any: { "@type": "type.googleapis.com/google.protobuf.Duration", value: "1s" } },
      }),
      refuses('{"any":{"title":"t"}}', "any", "@type"),
      refuses('{"any":{"@type":"type.googleapis.com/no.Such"}}', "any.@type", "no known type"),
      refuses('{"any":{"@type":"type.googleapis.com/foreign.v1.Book","titel":"t"}}', "any.titel", "title"),
      refuses('{"fMessage":{"@type":"x"}}', "fMessage.@type", "unknown"),
    ],
  },
];

export const errors: Rule[] = [
  {
    rule: "Unknown path: 404, code 5.",
    cases: [
      {
        send: "GET /v1/nothing",
        status: 404,
        answer: { code: 5, details: [reasonDetail("PATH_NOT_FOUND")] },
        answers: { "content-type": "application/json" },
      },
      { send: "OPTIONS /v1/nothing", status: 404 },
      { send: "POST /v1", status: 404 },
    ],
  },
  {
    rule: "Known path, wrong method (HEAD without GET too): 501, code 12, with Allow.",
    cases: [
      { send: "PUT /v1/books", status: 501, answer: { code: 12 }, answers: { allow: "GET, HEAD, OPTIONS" } },
      { send: "HEAD /v1/books:search", status: 501, answers: { allow: "POST, OPTIONS" } },
      { send: "GET /v1/books:search", status: 501, answers: { allow: "POST, OPTIONS" } },
      { send: "PROPFIND /v1/books", status: 501 },
      { send: "REPORT /v1/echo", status: 200, rpc: "echo" },
    ],
  },
  {
    rule: "OPTIONS: 204 with Allow; HEAD answers as GET without the body.",
    cases: [
      {
        send: "OPTIONS /v1/shelves/a/books/b",
        status: 204,
        rpc: null,
        answers: { allow: "GET, HEAD, PATCH, DELETE, OPTIONS" },
      },
      {
        send: "HEAD /v1/shelves/a/books/b",
        status: 200,
        rpc: "getBook",
        answer: "",
        answers: { "content-length": /^1\d\d$/ },
      },
      { send: "HEAD /v1/things/%ff", status: 400, answer: "" },
    ],
  },
  {
    rule: "A domain may override the HTTP status of one RPC and code; 413 and 415 stay.",
    cases: [
      { send: "DELETE /v1/shelves/a/books/b", status: 412, answer: { code: 9, message: "it is lent" } },
      { send: "POST /v1/books:search", headers: json, body: "{", status: 500, answer: { code: 3 } },
      {
        send: "POST /v1/books:search",
        headers: { "content-type": "text/plain" },
        body: "{",
        status: 415,
        answer: { code: 3 },
      },
      { send: "GET /v1/missing/a", status: 501, answer: { code: 12 } },
    ],
  },
  {
    rule: "A list that, when present in JSON, may not be empty; an update mask that is filled from the keys present in the body.",
    cases: [
      { send: "POST /v1/shelves/s/books", headers: json, body: '{"tags":[]}', status: 400, field: "tags" },
      { send: "POST /v1/shelves/s/books", headers: json, body: '{"tags":["a"]}', status: 200 },
      { send: "POST /v1/shelves/s/books", headers: json, body: '{"tags":null}', status: 400, field: "tags" },
      {
        send: "PATCH /v1/shelves/a/books/b",
        headers: json,
        body: '{"title":"","author":{"givenName":"x"},"shelf_mark":null}',
        status: 200,
        input: { updateMask: { paths: ["title", "author", "shelf_mark"] } },
      },
      {
        send: "PATCH /v1/shelves/a/books/b",
        headers: json,
        body: '{"name":"shelves/a/books/b","title":"t"}',
        status: 200,
        input: { updateMask: { paths: ["title"] } },
      },
      {
        send: "PATCH /v1/shelves/a/books/b",
        headers: json,
        body: "{}",
        status: 200,
        input: { updateMask: { paths: [] } },
      },
      {
        send: "PATCH /v1/shelves/a/books/b?updateMask=pages",
        headers: json,
        body: '{"title":"t"}',
        status: 200,
        input: { updateMask: { paths: ["pages"] } },
      },
      {
        send: "PUT /v1/shelves/a",
        headers: json,
        body: '{"shelf":"a","theme":"t","owner":{"givenName":"x","family_name":""}}',
        status: 200,
        input: { mask: { paths: ["theme", "owner.given_name", "owner.family_name"] } },
      },
      {
        send: "PUT /v1/shelves/a",
        headers: json,
        body: '{"owner":null}',
        status: 200,
        input: { mask: { paths: ["owner"] } },
      },
      {
        send: "PUT /v1/shelves/a",
        headers: json,
        body: '{"theme":"t","mask":"owner"}',
        status: 200,
        input: { mask: { paths: ["owner"] } },
      },
      {
        send: "PUT /v1/shelves/a?mask=theme",
        headers: json,
        body: '{"theme":"t","owner":null}',
        status: 200,
        input: { mask: { paths: ["theme"] } },
      },
      { send: "PUT /v1/shelves/a?theme=t", headers: json, body: "{}", status: 400, field: "theme" },
    ],
  },
  {
    rule: "Two members of one oneof are refused, wherever in the request they stand.",
    cases: [
      {
        send: "POST /v1/picks",
        headers: json,
        body: '{"givenName":"a"}',
        status: 200,
        input: { what: { case: "inner" } },
      },
      {
        send: "POST /v1/picks?label=a",
        headers: json,
        body: '{"givenName":"a"}',
        status: 400,
        rpc: null,
        field: "inner",
        message: 'only one of "label" and "inner" may be set',
      },
      {
        send: "POST /v1/picks/a/content",
        headers: { "content-type": "text/plain" },
        body: "bytes",
        status: 400,
        rpc: null,
        field: "content",
        message: 'only one of "label" and "content" may be set',
      },
    ],
  },
  {
    rule: "A JSON name that equals another field's proto name wins.",
    cases: [
      {
        send: "POST /v1/swaps/a",
        headers: json,
        body: '{"before_it":"1","after_it":"2"}',
        status: 200,
        input: {
          left: "a",
          first: "1",
          second: "2",
          beforeIt: "",
          afterIt: "",
          updateMask: { paths: ["first", "second"] },
        },
      },
      {
        send: "POST /v1/swaps/a",
        headers: json,
        body: `{"before_it":"1","beforeIt":"2","after_it":"3","afterIt":"4","left":"a"${" ".repeat(65_000 - 70)}}`,
        status: 200,
        input: { first: "1", beforeIt: "2", second: "3", afterIt: "4" },
      },
      {
        send: "GET /v1/swaps/a?before_it=1&after_it=2&beforeIt=3",
        status: 200,
        input: { first: "1", second: "2", beforeIt: "3", afterIt: "" },
      },
      {
        send: "POST /v1/swaps/a",
        headers: json,
        body: '{"after_it":7}',
        status: 400,
        field: "after_it",
      },
    ],
  },
  {
    rule: "A body that is not what its encoding says is 400, whatever its last bytes say of its length.",
    cases: [
      damaged.subarray(0, damaged.length - 9),
      Buffer.concat([damaged.subarray(0, -4), Buffer.from([9, 9, 9, 127])]),
    ].map((body) => ({
      send: "POST /v1/echo",
      headers: { ...json, "content-encoding": "gzip" },
      body,
      status: 400,
      answer: { code: 3 },
      message: "not what its content encoding says",
    })),
  },
];
