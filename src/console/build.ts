import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, relative } from "node:path";
import type { Plugin } from "rolldown";

/** A file of the built console; all but the page itself have their digest in their name. */
export interface BuiltFile {
  /** Below `/console/`. */
  readonly name: string;
  readonly bytes: Buffer;
}

/** The page, which names the others and is never cached. */
export const pageName = "index.html";

/**
 * Builds the console from the folder `console/` of `root`, in memory: scripts, a style sheet, and the page that loads them.
 * Throws what the bundler reports. May be repeated: the same sources make the same files.
 */
export async function buildConsole(root: string): Promise<BuiltFile[]> {
  // Loaded only here: a server whose console is built does without it.
  const { rolldown } = await import("rolldown");
  const sheets = new Map<string, string>();
  const bundle = await rolldown({
    input: join(root, "console/main.tsx"),
    cwd: root,
    platform: "browser",
    logLevel: "silent",
    tsconfig: join(root, "console/tsconfig.json"),
    plugins: [styleModules(root, (name, styles) => sheets.set(name, styles))],
  });
  const { output } = await bundle.generate({
    format: "es",
    minify: true,
    entryFileNames: "[name]-[hash].js",
    chunkFileNames: "[name]-[hash].js",
  });
  await bundle.close();
  const scripts = output.flatMap((each) => (each.type === "chunk" ? [each] : []));
  const entry = scripts.find(({ isEntry }) => isEntry);
  if (entry === undefined) throw new Error("the console's bundle has no entry");

  const plots = createRequire(join(root, "package.json")).resolve("uplot/dist/uPlot.min.css");
  const { transform } = await import("lightningcss");
  const texts = [readFileSync(plots), readFileSync(join(root, "console/ui/tokens.css")), ...inOrder(sheets)];
  const styles = Buffer.from(
    transform({ filename: "page.css", code: Buffer.from(texts.join("\n")), minify: true }).code,
  );
  const styleName = `page-${digest(styles)}.css`;
  const icon = readFileSync(join(root, "console/icon.svg"));
  const iconName = `icon-${digest(icon)}.svg`;
  const page = readFileSync(join(root, "console/page.html"), "utf8")
    .replace("{{styles}}", styleName)
    .replace("{{icon}}", iconName)
    .replace("{{entry}}", entry.fileName);
  return [
    { name: pageName, bytes: Buffer.from(page) },
    { name: styleName, bytes: styles },
    { name: iconName, bytes: icon },
    ...scripts.map(({ fileName, code }) => ({ name: fileName, bytes: Buffer.from(code) })),
  ];
}

/** Folders whose style sheets come before those of all screens, which may change what these say. */
const first = ["ui", "form", "clause", "data", "frame"];

/** Style sheets in an order that depends on their names alone: what a bundle meets first changes with its imports. */
function inOrder(sheets: ReadonlyMap<string, string>): string[] {
  const place = (name: string) => (first.indexOf(name.split("/", 1)[0] ?? "") + first.length + 1) % (first.length + 1);
  return [...sheets.entries()].sort(([a], [b]) => place(a) - place(b) || (a < b ? -1 : 1)).map(([, text]) => text);
}

/** Bundles `*.module.css`: a module has the names of its classes, which are unlike those of all others, and `keep` gets its styles. */
export function styleModules(root: string, keep: (name: string, styles: string) => void): Plugin {
  const folder = join(root, "console");
  return {
    name: "style-modules",
    load: {
      filter: { id: /\.module\.css$/ },
      async handler(id) {
        const { transform } = await import("lightningcss");
        const name = relative(folder, id);
        const { code, exports = {} } = transform({
          filename: name,
          code: readFileSync(id),
          cssModules: { pattern: "[name]-[hash]-[local]" },
        });
        keep(name, Buffer.from(code).toString());
        const names = Object.entries(exports).map(([local, { name: unique }]) => [local, unique]);
        return { code: `export default ${JSON.stringify(Object.fromEntries(names.sort()))};`, moduleType: "js" };
      },
    },
  };
}

function digest(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("base64url").slice(0, 8);
}
