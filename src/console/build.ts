import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

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
  const bundle = await rolldown({
    input: join(root, "console/main.tsx"),
    cwd: root,
    platform: "browser",
    logLevel: "silent",
    tsconfig: join(root, "console/tsconfig.json"),
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
  const styles = Buffer.concat([readFileSync(plots), readFileSync(join(root, "console/page.css"))]);
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

function digest(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("base64url").slice(0, 8);
}
