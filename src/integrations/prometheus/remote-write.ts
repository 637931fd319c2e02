import { Code } from "@connectrpc/connect";
import { Permission } from "#gen/belfry/auth/v1/permission_pb.ts";
import type { Config } from "../../config/settings.ts";
import type { FactStore } from "../../metrics/fact-store.ts";
import type { PointKinds } from "../../receiver/points.ts";
import { refusalOf } from "../../wire/status.ts";
import type { Answer, Integration, OperationCall } from "../integration.ts";
import { sentAgain } from "../sent-again.ts";
import { Unreadable } from "./message-walk.ts";
import { knownFacts } from "./metric-facts.ts";
import { type SeriesReader, seriesReader } from "./read-series.ts";
import { declaredLength, unpackSnappy } from "./snappy.ts";

/** What remote write works with here. */
export interface RemoteWriteParts {
  config: Pick<Config, "receiverItemsMax" | "receiverBytesMax" | "entityLabels">;
  points: Pick<PointKinds, "putChecked" | "known">;
  facts: FactStore;
}

type Version = 1 | 2;

const messages: Readonly<Record<string, Version>> = {
  "prometheus.WriteRequest": 1,
  "io.prometheus.write.v2.Request": 2,
};
const text = { "content-type": "text/plain; charset=utf-8" };

/** What Prometheus, its agents and many others send samples with: remote write, versions 1.0 and 2.0. */
export function remoteWrite(parts: RemoteWriteParts): Integration {
  const reader = seriesReader(parts.config, (tenantId) => parts.points.known(tenantId), knownFacts(parts.facts));
  return {
    name: "prometheus-remote-write",
    refuse(error, status, headers) {
      // Prometheus sends again what failed with 5xx, and drops the rest, 429 too.
      const told = sentAgain(error);
      const again = told.metadata.get("retry-after");
      return {
        status: told === error ? status : 503,
        headers: {
          ...text,
          ...(again !== null && { "retry-after": again }),
          ...(typeOf(headers).version === 2 && writtenHeaders(0, 0)),
        },
        body: `${status === 405 ? `Prometheus writes samples to this path with POST: ${told.rawMessage}` : told.rawMessage}\n`,
      };
    },
    operations: [
      {
        name: "write",
        routes: [{ method: "POST", path: "/api/v1/write" }],
        permission: Permission.INGEST,
        lane: "metrics",
        body: "as sent",
        serve: (call, body) => write(parts, reader, call, body),
      },
    ],
  };
}

/** The type that the headers name, and its version; undefined: there is none such. */
function typeOf({ "content-type": given }: OperationCall["headers"]): { type: string; version: Version | undefined } {
  // Without a type it is what there was before there were two.
  const type = given || "application/x-protobuf";
  const [media = "", ...parameters] = type.split(";").map((part) => part.trim());
  const proto = parameters.find((each) => /^proto=/i.test(each))?.slice("proto=".length) ?? "prometheus.WriteRequest";
  const known = media.toLowerCase() === "application/x-protobuf" && Object.hasOwn(messages, proto);
  return { type, version: known ? messages[proto] : undefined };
}

/** The version that the headers name. @throws 415 for another type or compression */
function versionOf({ headers }: OperationCall): Version {
  const encoding = headers["content-encoding"] ?? "snappy";
  if (encoding.toLowerCase() !== "snappy")
    throw refusalOf(
      Code.InvalidArgument,
      415,
      `Content-Encoding must be snappy, not ${JSON.stringify(encoding.slice(0, 100))}`,
    );
  const { type, version } = typeOf(headers);
  if (version === undefined)
    throw refusalOf(
      Code.InvalidArgument,
      415,
      `Content-Type must be application/x-protobuf, with proto=${Object.keys(messages).join(" or ")}, not ${JSON.stringify(type.slice(0, 100))}`,
    );
  return version;
}

async function unpacked({ config }: RemoteWriteParts, call: OperationCall, body: Buffer): Promise<Uint8Array> {
  const { length } = declaredLength(body);
  if (length > config.receiverBytesMax)
    throw refusalOf(
      Code.ResourceExhausted,
      413,
      `the body may have at most ${config.receiverBytesMax} bytes when unpacked; it declares ${length}`,
    );
  call.reserve(length);
  return await unpackSnappy(body, call.pace);
}

async function write(
  parts: RemoteWriteParts,
  reader: SeriesReader,
  call: OperationCall,
  body: Buffer,
): Promise<Answer> {
  const version = versionOf(call);
  const { points, outcome } = await unpacked(parts, call, body)
    .then((bytes) => reader.read(bytes, version, call))
    .catch((error: unknown) => {
      if (!(error instanceof Unreadable)) throw error;
      throw refusalOf(Code.InvalidArgument, 400, `the request cannot be read: ${error.message}`);
    });
  outcome.notStored(await parts.points.putChecked(call.sender, points, body.length));
  const [samples, histograms] = [outcome.written("samples"), outcome.written("histograms")];
  call.count("stored", samples + histograms - outcome.skipped());
  call.count("skipped", outcome.skipped());
  call.count("refused", outcome.refused());
  const headers: Record<string, string> = version === 1 ? {} : writtenHeaders(samples, histograms);
  const broken = outcome.text();
  if (broken === undefined) return { status: 204, headers };
  return { status: 400, headers: { ...headers, ...text }, body: `all was stored but for ${broken}\n` };
}

const writtenHeaders = (samples: number, histograms: number) => ({
  "x-prometheus-remote-write-samples-written": String(samples),
  "x-prometheus-remote-write-histograms-written": String(histograms),
  "x-prometheus-remote-write-exemplars-written": "0",
});
