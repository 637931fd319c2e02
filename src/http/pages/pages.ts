import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { marked } from "marked";
import Mustache from "mustache";
import { version } from "../../version.ts";
import { type Asset, answerAsset, asset } from "./asset.ts";

const here = (name: string) => new URL(name, import.meta.url);
const root = (name: string) => new URL(`../../../${name}`, import.meta.url);
const swagger = (name: string) => createRequire(import.meta.url).resolve(`swagger-ui-dist/${name}`);

/** Nothing from elsewhere, nothing inline, no eval; `data:` for the small pictures in Swagger UI's style sheet. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// A page names its files by their content: they are kept for ever, the page is asked for again.
const kept = { "cache-control": "public, max-age=31536000, immutable" };
const askedAgain = { "cache-control": "no-cache" };
const page = { ...askedAgain, "content-security-policy": policy, "cross-origin-opener-policy": "same-origin" };

const files: readonly [name: string, path: string | URL][] = [
  ["page.css", here("page.css")],
  ["docs.css", here("docs.css")],
  ["docs.js", here("docs.js")],
  ["start.js", here("start.js")],
  ["icon.svg", here("icon.svg")],
  ["swagger-ui.css", swagger("swagger-ui.css")],
  ["swagger-ui.js", swagger("swagger-ui-bundle.js")],
];

/** Pages whose content stays, by path, and those about the local CA, which may be made again. */
interface Pages {
  lasting: Map<string, Asset>;
  ofAuthority(): Promise<{ start: Asset; trust: Asset; certificate: Asset | undefined }>;
  /** What a browser is shown where there is nothing. */
  missing: Buffer;
}

async function readPages(caFile: string | undefined): Promise<Pages> {
  const lasting = new Map<string, Asset>();
  const paths: Record<string, string> = {};
  await Promise.all(
    files.map(async ([name, path]) => {
      const file = asset(name, await readFile(path), kept);
      const dot = name.lastIndexOf(".");
      const named = `/docs/assets/${name.slice(0, dot)}.${file.hash}${name.slice(dot)}`;
      paths[name.replaceAll(/[.-]/g, "_")] = named;
      lasting.set(named, file);
    }),
  );
  const [start, docs, licences, trusting, missing, trust, packages, openapi] = await Promise.all([
    readFile(here("start.html"), "utf8"),
    readFile(here("docs.html"), "utf8"),
    readFile(here("licences.html"), "utf8"),
    readFile(here("certificate.html"), "utf8"),
    readFile(here("missing.html"), "utf8"),
    readFile(root("docs/certificate.md"), "utf8"),
    readFile(root("gen/licences.json"), "utf8"),
    readFile(root("gen/openapi.json")),
  ]);
  // The page has a heading of its own.
  const sections = trust.slice(trust.indexOf("\n## "));
  const view = { ...paths, version, trust: await marked.parse(sections) };
  lasting.set("/docs", asset("docs.html", Mustache.render(docs, view), page));
  const list = { ...view, packages: JSON.parse(packages) };
  lasting.set("/docs/licences", asset("licences.html", Mustache.render(licences, list), page));
  lasting.set("/openapi.json", asset("openapi.json", openapi, askedAgain));

  function made(pem: Buffer | undefined) {
    const fingerprint = pem === undefined ? undefined : new X509Certificate(pem).fingerprint256;
    const disposition = 'attachment; filename="belfry-ca.crt"';
    return {
      start: asset("start.html", Mustache.render(start, { ...view, fingerprint }), { ...page, vary: "accept" }),
      trust: asset("certificate.html", Mustache.render(trusting, { ...view, fingerprint }), page),
      certificate: pem && asset("ca.crt", pem, { ...askedAgain, "content-disposition": disposition }),
    };
  }
  let last = made(caFile === undefined ? undefined : await readFile(caFile));
  return {
    lasting,
    missing: Buffer.from(Mustache.render(missing, view)),
    async ofAuthority() {
      if (caFile === undefined) return last;
      const pem = await readFile(caFile).catch(() => undefined);
      if (pem !== undefined && last.certificate?.bytes.equals(pem) !== true) last = made(pem);
      return last;
    },
  };
}

/** Whether a browser asks for a page: it names HTML, where programs ask for anything. */
const wantsPage = ({ method, headers }: FastifyRequest) =>
  (method === "GET" || method === "HEAD") && /\btext\/html\b/i.test(headers.accept ?? "");

/** Answers a browser that asked for a page where there is none; false for all others. */
export type AnswerMissing = (request: FastifyRequest, reply: FastifyReply) => boolean;

/**
 * Serves the pages for people: `/` where HTML is wanted, the reference at `/docs`, licences, and how to trust the local CA, with its certificate.
 * Returns what answers a browser at any other path.
 */
export async function servePages(app: FastifyInstance, caFile: string | undefined): Promise<AnswerMissing> {
  const { lasting, ofAuthority, missing } = await readPages(caFile);
  for (const [path, file] of lasting) app.get(path, (request, reply) => answerAsset(request, reply, file));
  app.get("/docs/", async (_request, reply) => reply.redirect("/docs", 308));
  app.get("/ca.crt", async (request, reply) => {
    const { certificate } = await ofAuthority();
    return certificate === undefined ? reply.callNotFound() : answerAsset(request, reply, certificate);
  });
  app.get("/certificate", async (request, reply) => {
    const { trust, certificate } = await ofAuthority();
    return certificate === undefined ? reply.callNotFound() : answerAsset(request, reply, trust);
  });
  app.get("/", async (request, reply) => {
    if (wantsPage(request)) return answerAsset(request, reply, (await ofAuthority()).start);
    reply.header("vary", "accept");
    return reply.callNotFound();
  });
  return (request, reply) => {
    if (!wantsPage(request)) return false;
    void reply
      .code(404)
      .headers({ ...page, vary: "accept" })
      .type("text/html; charset=utf-8")
      .send(missing);
    return true;
  };
}
