import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import type { CountLimits } from "../wire/message-limits.ts";
import { holdsRedacted } from "../wire/redacted.ts";
import { invalidValue } from "../wire/status.ts";
import { sentBack } from "./answer-as-body.ts";
import { bodyText } from "./body.ts";
import { maskFiller, pathChecker } from "./body-fields.ts";
import { fillHttpBody, holdsHttpBody, isHttpBody } from "./http-body.ts";
import { parseText, type ReadingCall, type TextReader } from "./json/parse.ts";
import type { JsonReader } from "./json/read-json.ts";
import { portionReader } from "./json/read-portions.ts";
import { isJsonError, type Scan } from "./json/scan.ts";
import type { MessageValues } from "./json/values.ts";
import { zeroMaker } from "./json/values.ts";
import { fieldNamed, type Route } from "./routes/binding.ts";
import { pathReader, queryReader } from "./url/query.ts";
import { setIn, valueIn } from "./url/target.ts";

/** Makes requests of one route out of their parts. All of it throws ConnectErrors of code 3 that name the field. */
export interface RequestReader {
  /** Whether the body passes as bytes, whatever its content type. */
  readonly rawBody: boolean;
  /** A request with what path and query say. */
  fromUrl(raw: readonly string[], query: string): MessageValues;
  /** Adds what the body says. Also throws code 8 for what holds too much. */
  addBody(request: MessageValues, bytes: Buffer, contentType: string | undefined, call: ReadingCall): Promise<void>;
}

/** Compiles the request reader of a route. */
export function requestReader(
  route: Route,
  reader: JsonReader,
  unknownFields: "refuse" | "ignore",
  limits: CountLimits,
): RequestReader {
  const { input } = route.method;
  const zero = zeroMaker(input);
  const readPath = pathReader(route);
  const readQuery = queryReader(route);
  const ignoreUnknown = unknownFields === "ignore";
  const discreet = holdsRedacted(input);
  const parse: Parse = (text, bytes, root, into, call) =>
    parseText(text, bytes, into, { root, limits, ignoreUnknown, discreet }, call);
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
    async addBody(request, bytes, contentType, call) {
      if (!rawBody) return addJson(request, bytes, call);
      if (field === undefined) fillHttpBody(request, contentType, bytes);
      else
        setBody(request, field, fillHttpBody({ $typeName: "google.api.HttpBody", extensions: [] }, contentType, bytes));
    },
  };

  function wholeBody() {
    const fill = filler(route, reader, parse, input, []);
    const fillMask = maskFiller(route, input);
    return async (request: MessageValues, bytes: Buffer, call: ReadingCall) => {
      const text = await fill(request, bytes, call);
      fillMask?.(request, text);
    };
  }

  function fieldBody(field: DescField) {
    const merged =
      field.fieldKind === "message" && !hasCustomJsonRepresentation(field.message) ? field.message : undefined;
    const fillMask = maskFiller(route, merged);
    if (merged === undefined) {
      const read = reader.field(field);
      return async (request: MessageValues, bytes: Buffer, call: ReadingCall) => {
        const text = bodyText(bytes);
        if (text !== "") setBody(request, field, await parse(text, bytes, field, { whole: read }, call));
      };
    }
    const make = zeroMaker(merged);
    const fill = filler(route, reader, parse, merged, [field.name]);
    return async (request: MessageValues, bytes: Buffer, call: ReadingCall) => {
      const held = (valueIn(request, field) ?? make()) as MessageValues;
      const text = await fill(held, bytes, call);
      setBody(request, field, held);
      fillMask?.(request, text);
    };
  }
}

/** Reads a JSON body into what a route has; what is wrong with it is said of `root`. */
type Parse = <T>(
  text: string,
  bytes: Buffer,
  root: DescMessage | DescField,
  into: TextReader<T>,
  call: ReadingCall,
) => Promise<T>;

/** Makes what reads a body into a message, whose place in the request is `path`, and returns its text. */
function filler(route: Route, reader: JsonReader, parse: Parse, desc: DescMessage, path: string[]) {
  const read = reader.message(desc);
  const check = pathChecker(route, path);
  const portions = portionReader(reader, desc);
  const adapt = sentBack(route);
  return async (message: MessageValues, sent: Buffer, call: ReadingCall): Promise<string> => {
    const given = bodyText(sent);
    const text = adapt(given);
    const bytes = text === given ? sent : Buffer.from(text);
    const before = check?.before(message);
    const into = { whole: (s: Scan) => read(s, message), inPortions: portions && ((s: Scan) => portions(s, message)) };
    if (text !== "") await parse(text, bytes, desc, into, call);
    if (before !== undefined) check?.after(message, text, before);
    return text;
  };
}

/** Sets the field that the body is; code 3 when path or query have set another member of its oneof. */
function setBody(request: MessageValues, field: DescField, value: unknown): void {
  try {
    setIn(request, field, value);
  } catch (error) {
    throw isJsonError(error) ? invalidValue(field.jsonName, error.message) : error;
  }
}
