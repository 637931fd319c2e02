import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { holdsRedacted } from "../wire/redacted.ts";
import { invalidValue } from "../wire/status.ts";
import { bodyText } from "./body.ts";
import { fillHttpBody, holdsHttpBody, isHttpBody } from "./http-body.ts";
import { byteOffset, pathAt } from "./json/path.ts";
import type { JsonReader } from "./json/read-json.ts";
import { finish, isJsonError, next, type Scan, scanOf } from "./json/scan.ts";
import type { Values } from "./json/values.ts";
import { zeroMaker } from "./json/zero.ts";
import { maskFiller } from "./mask.ts";
import { pathChecker } from "./path-check.ts";
import { fieldNamed, type Route } from "./routes/binding.ts";
import { pathReader, queryReader } from "./url/query.ts";
import { setIn, valueIn } from "./url/target.ts";

/** Makes requests of one route out of their parts. All of it throws ConnectErrors of code 3 that name the field. */
export interface RequestReader {
  /** Whether the body passes as bytes, whatever its content type. */
  readonly rawBody: boolean;
  /** A request with what path and query say. */
  fromUrl(raw: readonly string[], query: string): Values;
  /** Adds what the body says. */
  addBody(request: Values, bytes: Buffer, contentType: string | undefined): void;
  /** One message of a client stream. */
  message(bytes: Buffer): Values;
}

/** Compiles the request reader of a route. */
export function requestReader(route: Route, reader: JsonReader, unknownFields: "refuse" | "ignore"): RequestReader {
  const { input } = route.method;
  const zero = zeroMaker(input);
  const readPath = pathReader(route);
  const readQuery = queryReader(route);
  const ignoreUnknown = unknownFields === "ignore";
  const discreet = holdsRedacted(input);
  const field = route.body === "" || route.body === "*" ? undefined : fieldNamed(input, route.body);
  const rawBody = field === undefined ? route.body === "*" && isHttpBody(input) : holdsHttpBody(field);
  const addJson = field === undefined ? wholeBody() : fieldBody(field);

  return {
    rawBody,
    fromUrl(raw, query) {
      const request = zero();
      if (raw.length > 0) readPath(raw, request);
      if (query !== "") readQuery(query, request);
      return request;
    },
    addBody(request, bytes, contentType) {
      if (!rawBody) return addJson(request, bytes);
      if (field === undefined) fillHttpBody(request, contentType, bytes);
      else
        setIn(request, field, fillHttpBody({ $typeName: "google.api.HttpBody", extensions: [] }, contentType, bytes));
    },
    message(bytes) {
      return parse(bodyText(bytes), bytes, input, (s) => reader.message(input)(s) as Values);
    },
  };

  function wholeBody() {
    const read = reader.message(input);
    const check = pathChecker(route, []);
    const fillMask = maskFiller(route, input);
    return (request: Values, bytes: Buffer) => {
      const text = bodyText(bytes);
      const before = check?.before(request);
      if (text !== "") parse(text, bytes, input, (s) => read(s, request));
      if (before !== undefined) check?.after(request, text, before);
      fillMask?.(request, text);
    };
  }

  function fieldBody(field: DescField) {
    const merged =
      field.fieldKind === "message" && !hasCustomJsonRepresentation(field.message) ? field.message : undefined;
    const fillMask = maskFiller(route, merged);
    if (merged === undefined) {
      const read = reader.field(field);
      return (request: Values, bytes: Buffer) => {
        const text = bodyText(bytes);
        if (text !== "") setIn(request, field, parse(text, bytes, field, read));
      };
    }
    const read = reader.message(merged);
    const make = zeroMaker(merged);
    const check = pathChecker(route, [field.name]);
    return (request: Values, bytes: Buffer) => {
      const text = bodyText(bytes);
      const held = (valueIn(request, field) ?? make()) as Values;
      const before = check?.before(held);
      if (text !== "") parse(text, bytes, merged, (s) => read(s, held));
      if (before !== undefined) check?.after(held, text, before);
      setIn(request, field, held);
      fillMask?.(request, text);
    };
  }

  function parse<T>(text: string, bytes: Buffer, root: DescMessage | DescField, read: (s: Scan) => T): T {
    const s = scanOf(text, { bytes, ignoreUnknown, discreet });
    try {
      next(s);
      const value = read(s);
      finish(s);
      return value;
    } catch (error) {
      if (!isJsonError(error)) throw error;
      const path = pathAt(text, error.offset, root);
      throw invalidValue(path, error.message, ` (byte ${byteOffset(text, error.offset)})`);
    }
  }
}
