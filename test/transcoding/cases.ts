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
type Rest = Omit<Case, "send" | "status">;
type Body = string | Uint8Array;
const rule = (words: string, cases: Case[]): Rule => ({ rule: words, cases });
const row = (send: string, status: number, rest: Rest = {}): Case => ({ send, status, ...rest });
/** A row whose body is JSON. */
const sends = (send: string, body: Body, status: number, rest: Rest = {}) =>
  row(send, status, { headers: json, body, ...rest });
/** A row whose body has a content encoding. */
const encoded = (encoding: string, body: Body, status: number, rest: Rest = {}) =>
  row("POST /v1/echo", status, { headers: { ...json, "content-encoding": encoding }, body, ...rest });
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
  rule("Literals are pchar and compared decoded.", [
    row("GET /v1/books", 200, { rpc: "listBooks" }),
    row("GET /v1/b%6Foks", 200, { rpc: "listBooks" }),
    row("GET /%761/books", 200, { rpc: "listBooks" }),
    row("GET /v1/Books", 404, { answer: { code: 5 } }),
    row("GET /v1/books%2F", 404),
  ]),
  rule("{x} and * never match an empty segment; a trailing slash is another path (404).", [
    row("GET /v1/things/", 404, { rpc: null, answer: { code: 5 } }),
    row("GET /v1/books/", 404),
    row("GET /v1//books", 404),
    row("GET /v1/shelves//books", 404),
    row("GET /v1/things/a/", 404),
    row("GET /v1/files/a/", 404),
    row("GET /v1/files/a//b", 404),
  ]),
  rule("{x=**} matches zero or more segments.", [
    row("GET /v1/files", 200, { rpc: "getFile", input: { path: "" } }),
    row("GET /v1/files/a", 200, { input: { path: "a" } }),
    row("GET /v1/files/a/b/c.txt", 200, { input: { path: "a/b/c.txt" } }),
    row("GET /v1/files/a/b:preview", 200, { rpc: "previewFile", input: { path: "a/b" } }),
  ]),
  rule("A variable of one segment is decoded once, whole (%2F and %3A in it are data).", [
    row("GET /v1/things/a%2Fb%3Ac", 200, { rpc: "getThing", input: { id: "a/b:c" } }),
    row("GET /v1/things/a%252Fb", 200, { input: { id: "a%2Fb" } }),
    row("GET /v1/things/%E2%82%AC", 200, { input: { id: "€" } }),
    sends("POST /v1/things/a%3Amove", "{}", 501),
  ]),
  rule("One of many segments keeps %2F as it came.", [
    row("GET /v1/files/a%2Fb/c%20d", 200, { input: { path: "a%2Fb/c d" } }),
    row("GET /v1/files/a%2fb", 200, { input: { path: "a%2fb" } }),
    row("GET /v1/shelves/s%2F1/books/b%3A2", 200, { input: { name: "shelves/s%2F1/books/b:2" } }),
  ]),
  rule("+ is a plus.", [row("GET /v1/things/a+b", 200, { input: { id: "a+b" } })]),
  rule("Precedence segment by segment: literal, *, **; then verb before none.", [
    row("GET /v1/missing/a", 501, { rpc: "missing" }),
    row("GET /v1/things/a:move", 200, { rpc: "getThing", input: { id: "a:move" } }),
    sends("POST /v1/things/a:move", "{}", 200, { rpc: "moveBook", input: { id: "a" } }),
  ]),
  rule("A raw : followed by a verb registered there is the verb (longest first); any other colon is data.", [
    row("GET /v1/things/a:b", 200, { rpc: "getThing", input: { id: "a:b" } }),
    row("GET /v1/things/:", 200, { input: { id: ":" } }),
    sends("POST /v1/things/a:b:move", "{}", 200, { rpc: "moveBook", input: { id: "a:b" } }),
    row("GET /v1/files/a:preview", 200, { rpc: "previewFile", input: { path: "a" } }),
    row("GET /v1/files/a:previews", 200, { rpc: "getFile", input: { path: "a:previews" } }),
    row("GET /v1/files/a%3Apreview", 200, { rpc: "getFile", input: { path: "a:preview" } }),
    row("GET /v1/files/a:previe%77", 200, { rpc: "previewFile", input: { path: "a" } }),
    sends("POST /v1/books:search", "{}", 200, { rpc: "searchBooks" }),
    sends("POST /v1/books:nothing", "{}", 404),
  ]),
  rule("Malformed escape or non-UTF-8: 400 naming the variable.", [
    row("GET /v1/things/a%", 400, { rpc: null, answer: { code: 3 }, field: "id" }),
    row("GET /v1/things/a%zz", 400, { field: "id" }),
    row("GET /v1/things/%ff", 400, { field: "id" }),
    row("GET /v1/files/a/%c3", 400, { field: "path" }),
  ]),
  rule("Integers are decimal only, range-checked.", [
    row("GET /v1/typed/-7/18446744073709551615/true/COLOR_RED/AQI/1.5", 200, {
      input: { i32: -7, u64: 18446744073709551615n, flag: true, color: 1, data: new Uint8Array([1, 2]), ratio: 1.5 },
    }),
    row("GET /v1/typed/1/1/false/2/AQI%3D/-Infinity", 200, { input: { color: 2, ratio: -Infinity } }),
    row("GET /v1/typed/0x10/1/true/0/AQI/1", 400, { field: "i32" }),
    row("GET /v1/typed/1e3/1/true/0/AQI/1", 400, { field: "i32" }),
    row("GET /v1/typed/+1/1/true/0/AQI/1", 400, { field: "i32" }),
    row("GET /v1/typed/1.0/1/true/0/AQI/1", 400, { field: "i32" }),
    row("GET /v1/typed/2147483648/1/true/0/AQI/1", 400, { field: "i32" }),
    row("GET /v1/typed/1/-1/true/0/AQI/1", 400, { field: "u64" }),
    row("GET /v1/typed/1/18446744073709551616/true/0/AQI/1", 400, { field: "u64" }),
    row("GET /v1/typed/1/1/TRUE/0/AQI/1", 400, { field: "flag" }),
    row("GET /v1/typed/1/1/true/9/AQI/1", 400, { field: "color" }),
    row("GET /v1/typed/1/1/true/RED/AQI/1", 400, { field: "color", message: "COLOR_RED" }),
    row("GET /v1/typed/1/1/true/0/A/1", 400, { field: "data" }),
    row("GET /v1/typed/1/1/true/0/AQI/1_0", 400, { field: "ratio" }),
  ]),
];

export const queries: Rule[] = [
  rule("Proto or JSON names; a.b.c through singular messages.", [
    row("GET /v1/books?page_size=2", 200, { input: { pageSize: 2 } }),
    row("GET /v1/books?pageSize=2", 200, { input: { pageSize: 2 } }),
    row("GET /v1/books?author.given_name=A&author.familyName=B", 200, {
      input: { author: { givenName: "A", familyName: "B" } },
    }),
    row("GET /v1/echo?fMessage.fMessage.fInt32=7", 200, { input: { fMessage: { fMessage: { fInt32: 7 } } } }),
    row("GET /v1/echo?rMessage.fInt32=7", 400, { field: "rMessage.fInt32" }),
    row("GET /v1/echo?fString.x=7", 400, { field: "fString.x" }),
  ]),
  rule("Repeat the key for repeated fields (no comma split).", [
    row("GET /v1/books?tags=a&tags=b,c&tags=", 200, { input: { tags: ["a", "b,c", ""] } }),
    row("GET /v1/echo?rInt64=1&rInt64=-2&rEnum=COLOR_RED&rEnum=2", 200, {
      input: { rInt64: [1n, -2n], rEnum: [1, 2] },
    }),
  ]),
  rule("f[key]=v for maps of scalars.", [
    row("GET /v1/echo?mStringString[a]=1&mStringString[b%20c]=2", 200, {
      input: { mStringString: { a: "1", "b c": "2" } },
    }),
    row("GET /v1/echo?m_int32_int64[7]=8", 200, { input: { mInt32Int64: { 7: 8n } } }),
    row("GET /v1/echo?mInt32Int64[x]=8", 400, { field: "mInt32Int64[x]" }),
    row("GET /v1/echo?mInt32Int64[1]=8&mInt32Int64[1]=9", 400, { field: "mInt32Int64[1]" }),
    row("GET /v1/echo?mStringString=8", 400, { field: "mStringString" }),
    row("GET /v1/echo?fString[a]=8", 400, { field: "fString[a]" }),
    row("GET /v1/echo?mStringMessage[a]=8", 400, { field: "mStringMessage[a]" }),
  ]),
  rule(
    "Enums by name or declared number; true/false; wrappers, Timestamp, Duration as in ProtoJSON; FieldMask in either case.",
    [
      row("GET /v1/echo?fEnum=COLOR_GREEN", 200, { input: { fEnum: 2 } }),
      row("GET /v1/echo?fEnum=2", 200, { input: { fEnum: 2 } }),
      row("GET /v1/echo?fEnum=7", 400, { field: "fEnum" }),
      row("GET /v1/echo?fBool=true&oBool=false", 200, { input: { fBool: true, oBool: false } }),
      row("GET /v1/echo?fBool=1", 400, { field: "fBool" }),
      row("GET /v1/echo?wInt64=5&wString=x&wBool=true", 200, { input: { wInt64: 5n, wString: "x", wBool: true } }),
      row("GET /v1/echo?timestamp=2024-02-29T00:00:00Z", 200, {
        input: { timestamp: { seconds: 1709164800n, nanos: 0 } },
      }),
      row("GET /v1/echo?timestamp=2023-02-29T00:00:00Z", 400, { field: "timestamp" }),
      row("GET /v1/echo?duration=-1.5s", 200, { input: { duration: { seconds: -1n, nanos: -500000000 } } }),
      row("GET /v1/echo?fieldMask=aB.cD,x_y", 200, { input: { fieldMask: { paths: ["a_b.c_d", "x_y"] } } }),
      row("GET /v1/echo?struct=1", 400, { field: "struct" }),
      row("GET /v1/echo?fMessage=1", 400, { field: "fMessage" }),
    ],
  ),
  rule("?flag is the empty value; + is a space.", [
    row("GET /v1/echo?fString", 200, { input: { fString: "" } }),
    row("GET /v1/echo?oString", 200, { input: { oString: "" } }),
    row("GET /v1/echo?fString=a+b%2Bc", 200, { input: { fString: "a b+c" } }),
    row("GET /v1/echo?fBool", 400, { field: "fBool" }),
    row("GET /v1/echo?", 200, { input: { fString: "" } }),
    row("GET /v1/echo?&&fString=a&", 200, { input: { fString: "a" } }),
    row("GET /v1/echo?fString=%zz", 400, { field: "fString" }),
    row("GET /v1/echo?fString=a?b=c", 200, { input: { fString: "a?b=c" } }),
  ]),
  rule(
    "A path's field in the query: 400. Twice for a singular field, two members of one oneof, an unknown name: 400 naming it.",
    [
      row("GET /v1/shelves/a/books?shelf=a", 400, { field: "shelf" }),
      row("GET /v1/books?pageSize=1&page_size=2", 400, { field: "page_size", message: "twice" }),
      row("GET /v1/echo?cString=a&cInt64=1", 400, { field: "cInt64", message: "cString" }),
      row("GET /v1/books?pagSize=1", 400, { field: "pagSize", message: 'did you mean "pageSize"?' }),
      row("GET /v1/books?author.givenNme=1", 400, { field: "author.givenNme", message: "givenName" }),
      row("GET /v1/books?qqqqqq=1", 400, { field: "qqqqqq", message: /unknown query parameter$/ }),
    ],
  ),
  rule('With body: "*" any query parameter is unknown; a field of the body is not for the query.', [
    sends("POST /v1/echo?fInt32=1", "{}", 400, { field: "fInt32" }),
    sends("POST /v1/shelves/s/books?book_id=7", "{}", 200, { input: { shelf: "s", bookId: "7" } }),
    sends("POST /v1/shelves/s/books?book.title=7", "{}", 400, { field: "book.title" }),
  ]),
];

export const bodies: Rule[] = [
  rule("application/json, application/*+json or none; charset absent or utf-8 (any case, quoted); else 415 (code 3).", [
    ...[
      "application/json",
      "APPLICATION/JSON",
      "application/json; charset=utf-8",
      "application/json;charset=UTF-8",
      'application/json; charset="Utf-8"',
      "application/json; charset=utf8",
      "application/vnd.foreign.v1+json",
      "application/json; profile=x; charset=utf-8",
    ].map((type): Case => row("POST /v1/echo", 200, { headers: { "content-type": type }, body: "{}" })),
    row("POST /v1/echo", 200, { body: "{}" }),
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
      (type): Case =>
        row("POST /v1/echo", 415, { headers: { "content-type": type }, body: "{}", rpc: null, answer: { code: 3 } }),
    ),
  ]),
  rule("gzip, br, deflate accepted; other encodings 415.", [
    ...(
      [
        ["gzip", gzipSync],
        ["GZIP", gzipSync],
        ["br", brotliCompressSync],
        ["deflate", deflateSync],
        ["deflate", deflateRawSync],
      ] as const
    ).map(([encoding, pack]): Case => encoded(encoding, pack('{"fInt32":7}'), 200, { input: { fInt32: 7 } })),
    encoded("identity", "{}", 200),
    encoded("zstd", "{}", 415, { answer: { code: 3 } }),
    encoded("gzip, br", "{}", 415),
    encoded("gzip", "{}", 400, { answer: { code: 3 } }),
    encoded("toString", "{}", 415),
  ]),
  rule("Limit on Content-Length, on bytes read, and again after decompression: 413, code 8.", [
    sends("POST /v1/echo", `{"fString":"${"x".repeat(70_000)}"}`, 413, { rpc: null, answer: { code: 8 } }),
    row("POST /v1/echo", 413, {
      headers: { ...json, "transfer-encoding": "chunked" },
      body: `{"fString":"${"x".repeat(70_000)}"}`,
      answer: { code: 8 },
    }),
    ...(
      [
        ["gzip", gzipSync],
        ["br", brotliCompressSync],
        ["deflate", deflateSync],
      ] as const
    ).map(
      ([encoding, pack]): Case =>
        encoded(encoding, pack(`{"fString":"${"x".repeat(10_000_000)}"}`), 413, { answer: { code: 8 } }),
    ),
    echo(`{"fString":"${"x".repeat(65_500)}"}`, { status: 200 }),
  ]),
  rule("Nesting at most 100.", [
    echo(`${'{"fMessage":'.repeat(99)}{}${"}".repeat(99)}`, { status: 200 }),
    echo(`${'{"fMessage":'.repeat(100)}{}${"}".repeat(100)}`, { status: 400, message: "100" }),
    echo(`{"value":${"[".repeat(99)}${"]".repeat(99)}}`, { status: 200 }),
    echo(`{"value":${"[".repeat(100)}${"]".repeat(100)}}`, { status: 400, message: "100" }),
    echo(`{"struct":${'{"a":'.repeat(5000)}`, { status: 400, message: "100" }),
  ]),
  rule("Empty body = empty message.", [
    row("POST /v1/echo", 200, { input: { fInt32: 0 } }),
    sends("POST /v1/echo", "", 200, { input: { fInt32: 0 } }),
    row("POST /v1/shelves/s/books", 200, { input: { shelf: "s", book: { title: "" } } }),
  ]),
  rule(
    "400 with message, field path and byte offset for: malformed JSON, trailing text, a top-level value that is no object.",
    [
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
  ),
  rule("… BOM, invalid UTF-8, lone surrogates, a key twice (also as both proto and JSON name).", [
    echo("\ufeff{}", { status: 400, message: "byte order mark" }),
    sends("POST /v1/echo", Buffer.from([0x7b, 0x22, 0x61, 0xff, 0x22, 0x7d]), 400, { message: /UTF-8.*byte 3/ }),
    sends("POST /v1/echo", Buffer.from('{"fString":"\xed\xa0\x80"}', "latin1"), 400, { message: "UTF-8" }),
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
  ]),
  rule("… wrong types, out-of-range or inexact integers, unknown enum names.", [
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
  ]),
  rule("… unknown fields (with the nearest name).", [
    refuses('{"fSting":1}', "fSting", /did you mean "fString"\?.*byte 1/),
    refuses('{"fMessage":{"f_strin":1}}', "fMessage.f_strin", "fString"),
    refuses('{"qqqqqqqq":1}', "qqqqqqqq", /unknown field "qqqqqqqq" /),
    refuses('{"fstring":1}', "fstring", "fString"),
    refuses('{"[foreign.v1.ext]":1}', "[foreign.v1.ext]", "unknown"),
    refuses('{"__proto__":1}', "__proto__", "unknown"),
    refuses('{"constructor":1}', "constructor", "unknown"),
  ]),
  rule("A body where the rule has none: 400, but Content-Length: 0 is fine.", [
    sends("GET /v1/books", "{}", 400, { rpc: null, answer: { code: 3 } }),
    sends("DELETE /v1/shelves/a/books/b", "{}", 400),
    row("GET /v1/books", 400, { headers: { "transfer-encoding": "chunked" }, body: "{}" }),
    row("GET /v1/books", 200, { headers: { "transfer-encoding": "chunked" }, body: "" }),
    row("GET /v1/books", 200, { headers: { "content-length": "0" } }),
    row("GET /v1/books", 200, { headers: { "content-type": "text/plain", "content-length": "0" } }),
  ]),
  rule("A body value for a path's field that differs from the path's: 400; equal is fine.", [
    sends("PUT /v1/shelves/a", '{"shelf":"a"}', 200, { input: { shelf: "a" } }),
    sends("PUT /v1/shelves/a", '{"shelf":null}', 200, { input: { shelf: "a" } }),
    sends("PUT /v1/shelves/a", '{"theme":"t"}', 200, { input: { shelf: "a" } }),
    sends("PUT /v1/shelves/a", '{"shelf":"b"}', 400, { field: "shelf" }),
    sends("PUT /v1/shelves/a", '{"shelf":""}', 400, { field: "shelf" }),
    sends("PATCH /v1/shelves/a/books/b", '{"title":"t"}', 200, { input: { book: { name: "shelves/a/books/b" } } }),
    sends("PATCH /v1/shelves/a/books/b", '{"name":"shelves/a/books/b"}', 200),
    sends("PATCH /v1/shelves/a/books/b", '{"name":"x"}', 400, { field: "name" }),
    row("PATCH /v1/shelves/a/books/b", 200, { input: { book: { name: "shelves/a/books/b" } } }),
  ]),
];

export const values: Rule[] = [
  rule("64-bit integers as string or number, exact to the last digit.", [
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
  ]),
  rule('1e3 and 1.0 are integers, in quotes too, "0x10", " 1", "+1" are not.', [
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
  ]),
  rule("base64 and base64url, padded or not, never mixed.", [
    reads('{"rBytes":["-_8=","-_8","+/8=","+/8","","AA=="]}', {
      rBytes: [...Array(4).fill(new Uint8Array([251, 255])), new Uint8Array(), new Uint8Array([0])],
    }),
    ...['"-/8="', '"A"', '"AA="', '"AA==="', '"A A="', '"AA=A"', '"!"', '"AAAA="'].map((text) =>
      refuses(`{"fBytes":${text}}`, "fBytes", "base64"),
    ),
  ]),
  rule("Timestamp and Duration real dates and ranges only (2021-02-30 is refused).", [
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
  ]),
  rule("null = unset, an error in lists.", [
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
  ]),
  rule(
    "A field that is a list, or any JSON value, may be the whole body; Any holds its message's fields beside @type.",
    [
      sends("PUT /v1/echo/list", '["a","b"]', 200, { input: { rString: ["a", "b"] }, answer: ["a", "b"] }),
      sends("PUT /v1/echo/list", "{}", 400, { field: "" }),
      sends("PUT /v1/echo/list", '["a",1]', 400, { field: "[1]" }),
      sends("PUT /v1/echo/value", "null", 200, { answer: "null" }),
      sends("PUT /v1/echo/value", '{"a":[1]}', 200, { answer: { a: [1] } }),
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
  ),
];

export const errors: Rule[] = [
  rule("Unknown path: 404, code 5.", [
    row("GET /v1/nothing", 404, {
      answer: { code: 5, details: [reasonDetail("PATH_NOT_FOUND")] },
      answers: { "content-type": "application/json" },
    }),
    row("OPTIONS /v1/nothing", 404),
    row("POST /v1", 404),
  ]),
  rule("Known path, wrong method (HEAD without GET too): 501, code 12, with Allow.", [
    row("PUT /v1/books", 501, { answer: { code: 12 }, answers: { allow: "GET, HEAD, OPTIONS" } }),
    row("HEAD /v1/books:search", 501, { answers: { allow: "POST, OPTIONS" } }),
    row("GET /v1/books:search", 501, { answers: { allow: "POST, OPTIONS" } }),
    row("PROPFIND /v1/books", 501),
    row("REPORT /v1/echo", 200, { rpc: "echo" }),
  ]),
  rule("OPTIONS: 204 with Allow; HEAD answers as GET without the body.", [
    row("OPTIONS /v1/shelves/a/books/b", 204, { rpc: null, answers: { allow: "GET, HEAD, PATCH, DELETE, OPTIONS" } }),
    row("HEAD /v1/shelves/a/books/b", 200, { rpc: "getBook", answer: "", answers: { "content-length": /^1\d\d$/ } }),
    row("HEAD /v1/things/%ff", 400, { answer: "" }),
  ]),
  rule("A domain may override the HTTP status of one RPC and code; 413 and 415 stay.", [
    row("DELETE /v1/shelves/a/books/b", 412, { answer: { code: 9, message: "it is lent" } }),
    sends("POST /v1/books:search", "{", 500, { answer: { code: 3 } }),
    row("POST /v1/books:search", 415, { headers: { "content-type": "text/plain" }, body: "{", answer: { code: 3 } }),
    row("GET /v1/missing/a", 501, { answer: { code: 12 } }),
  ]),
  rule(
    "A list that, when present in JSON, may not be empty; an update mask that is filled from the keys present in the body.",
    [
      sends("POST /v1/shelves/s/books", '{"tags":[]}', 400, { field: "tags" }),
      sends("POST /v1/shelves/s/books", '{"tags":["a"]}', 200),
      sends("POST /v1/shelves/s/books", '{"tags":null}', 400, { field: "tags" }),
      sends("PATCH /v1/shelves/a/books/b", '{"title":"","author":{"givenName":"x"},"shelf_mark":null}', 200, {
        input: { updateMask: { paths: ["title", "author", "shelf_mark"] } },
      }),
      sends("PATCH /v1/shelves/a/books/b", '{"name":"shelves/a/books/b","title":"t"}', 200, {
        input: { updateMask: { paths: ["title"] } },
      }),
      sends("PATCH /v1/shelves/a/books/b", "{}", 200, { input: { updateMask: { paths: [] } } }),
      sends("PATCH /v1/shelves/a/books/b?updateMask=pages", '{"title":"t"}', 200, {
        input: { updateMask: { paths: ["pages"] } },
      }),
      sends("PUT /v1/shelves/a", '{"shelf":"a","theme":"t","owner":{"givenName":"x","family_name":""}}', 200, {
        input: { mask: { paths: ["theme", "owner.given_name", "owner.family_name"] } },
      }),
      sends("PUT /v1/shelves/a", '{"owner":null}', 200, { input: { mask: { paths: ["owner"] } } }),
      sends("PUT /v1/shelves/a", '{"theme":"t","mask":"owner"}', 200, { input: { mask: { paths: ["owner"] } } }),
      sends("PUT /v1/shelves/a?mask=theme", '{"theme":"t","owner":null}', 200, {
        input: { mask: { paths: ["theme"] } },
      }),
      sends("PUT /v1/shelves/a?theme=t", "{}", 400, { field: "theme" }),
    ],
  ),
  rule("Two members of one oneof are refused, wherever in the request they stand.", [
    sends("POST /v1/picks", '{"givenName":"a"}', 200, { input: { what: { case: "inner" } } }),
    sends("POST /v1/picks?label=a", '{"givenName":"a"}', 400, {
      rpc: null,
      field: "inner",
      message: 'only one of "label" and "inner" may be set',
    }),
    row("POST /v1/picks/a/content", 400, {
      headers: { "content-type": "text/plain" },
      body: "bytes",
      rpc: null,
      field: "content",
      message: 'only one of "label" and "content" may be set',
    }),
  ]),
  rule("A JSON name that equals another field's proto name wins.", [
    sends("POST /v1/swaps/a", '{"before_it":"1","after_it":"2"}', 200, {
      input: {
        left: "a",
        first: "1",
        second: "2",
        beforeIt: "",
        afterIt: "",
        updateMask: { paths: ["first", "second"] },
      },
    }),
    sends(
      "POST /v1/swaps/a",
      `{"before_it":"1","beforeIt":"2","after_it":"3","afterIt":"4","left":"a"${" ".repeat(65_000 - 70)}}`,
      200,
      { input: { first: "1", beforeIt: "2", second: "3", afterIt: "4" } },
    ),
    row("GET /v1/swaps/a?before_it=1&after_it=2&beforeIt=3", 200, {
      input: { first: "1", second: "2", beforeIt: "3", afterIt: "" },
    }),
    sends("POST /v1/swaps/a", '{"after_it":7}', 400, { field: "after_it" }),
  ]),
  rule(
    "A body that is not what its encoding says is 400, whatever its last bytes say of its length.",
    [
      damaged.subarray(0, damaged.length - 9),
      Buffer.concat([damaged.subarray(0, -4), Buffer.from([9, 9, 9, 127])]),
    ].map((body) => encoded("gzip", body, 400, { answer: { code: 3 }, message: "not what its content encoding says" })),
  ),
];
