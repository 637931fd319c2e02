import { execFileSync, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { program } from "../support/program.ts";

const root = join(import.meta.dirname, "../..");

/** A version of the server, to be run from where it lies. */
export interface Version {
  version: string;
  tree: string;
  /** Whether it has a setting. */
  knows(setting: string): boolean;
  remove(): void;
}

function versionIn(tree: string, remove: () => void): Version {
  const { version } = JSON.parse(readFileSync(join(tree, "package.json"), "utf8"));
  const source = ["src/config/settings.ts", "src/config.ts", "dist/src/config/settings.js", "dist/src/config.js"]
    .map((path) => join(tree, path))
    .find(existsSync);
  if (source === undefined) throw new Error(`${tree} holds no version of the server`);
  const settings = readFileSync(source, "utf8");
  return { version, tree, knows: (setting) => settings.includes(`"${setting}"`), remove };
}

function emptyTree(): { tree: string; remove(): void } {
  const tree = mkdtempSync(join(tmpdir(), "belfry-version-"));
  symlinkSync(join(root, "node_modules"), join(tree, "node_modules"));
  const remove = () => rmSync(tree, { recursive: true, force: true });
  process.once("exit", remove);
  return { tree, remove };
}

/** The commit of 0.1.0. */
export const firstRelease = "0ec340a";

/** This checkout. */
export const ownVersion = (): Version => versionIn(root, () => {});

/**
 * An earlier version, by where it lies (a checkout, or what the npm package holds), or by its commit or tag, packed by npm. It
 * runs on the packages of this checkout; with `ownPackages` on those of its lock file, which are installed where it differs.
 */
export function versionBefore(place: string, ownPackages = false): Version {
  if (existsSync(join(place, "package.json"))) return versionIn(resolve(place), () => {});
  const checkout = emptyTree();
  const { tree, remove } = emptyTree();
  try {
    const files = execFileSync("git", ["archive", place], { cwd: root, maxBuffer: 2 ** 30, stdio: "pipe" });
    execFileSync("tar", ["-x", "-C", checkout.tree], { input: files });
    const packages = join(checkout.tree, "node_modules");
    const lock = (of: string) => readFileSync(join(of, "package-lock.json"), "utf8");
    const differs = ownPackages && lock(checkout.tree) !== lock(root);
    if (differs) {
      rmSync(packages);
      const install = ["ci", "--omit=dev", "--no-audit", "--no-fund"];
      execFileSync("npm", install, { cwd: checkout.tree, stdio: ["ignore", "ignore", "inherit"] });
    }
    const [packed] = JSON.parse(
      execFileSync("npm", ["pack", "--offline", "--json"], { cwd: checkout.tree, encoding: "utf8", stdio: "pipe" }),
    );
    execFileSync("tar", ["-xzf", join(checkout.tree, packed.filename), "--strip-components=1", "-C", tree]);
    if (differs) {
      rmSync(join(tree, "node_modules"));
      renameSync(packages, join(tree, "node_modules"));
    }
    return versionIn(tree, remove);
  } catch (error) {
    remove();
    throw error;
  } finally {
    checkout.remove();
  }
}

/** Whether this clone holds a commit: a shallow one does not hold those of releases. */
export function holds(commit: string): boolean {
  return spawnSync("git", ["cat-file", "-e", `${commit}^{commit}`], { cwd: root }).status === 0;
}

const outside = "-- outside of a transaction\n";

/** What later versions do to tables that are in use, in the ways that CONTRIBUTING.md asks for. */
const steps: Record<string, string> = {
  column: "alter table entities add column next_note text not null default 'none';",
  column_of_occurrences: "alter table occurrences add column next_weight int4 not null default 1;",
  column_of_rules: "alter table rules add column next_flag boolean not null default false;",
  column_of_triggers: "alter table triggers add column next_flag boolean;",
  table: "create table next_notes (tenant_id uuid not null, id uuid not null, note text, primary key (tenant_id, id));",
  index: `${outside}create index concurrently next_entities on entities (tenant_id, next_note);`,
  check: "alter table occurrences add constraint next_check check (severity >= 0) not valid;",
  check_validated: "alter table occurrences validate constraint next_check;",
  partitioned: "alter table instances add column next_source text;",
  type: "create type next_mood as enum ('calm');",
  type_value: `${outside}alter type next_mood add value if not exists 'busy';`,
  filled: `${outside}do $$
declare found int4;
begin
  loop
    update entities set next_note = 'filled' where (tenant_id, id) in (
      select tenant_id, id from entities where next_note = 'none' limit 100 for update skip locked);
    get diagnostics found = row_count;
    exit when found = 0;
    commit;
  end loop;
end $$;`,
};

/** This checkout with a higher version, and with migrations that name the oldest server that may go on. */
export async function nextVersion(version: string, oldestServer: string): Promise<Version> {
  const { tree, remove } = emptyTree();
  for (const path of ["src", "gen", "proto", "docs", "migrations"])
    cpSync(join(root, path), join(tree, path), { recursive: true });
  // As the servers of this checkout: in a few files, which know where their sources lie.
  const bundle = dirname(await program());
  mkdirSync(join(tree, "bundle"));
  for (const name of readdirSync(bundle)) {
    const text = readFileSync(join(bundle, name), "utf8");
    writeFileSync(join(tree, "bundle", name), text.replaceAll(join(root, "src/"), join(tree, "src/")));
  }
  const about = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  writeFileSync(join(tree, "package.json"), JSON.stringify({ ...about, version }));
  const file = join(tree, "migrations/meta/_journal.json");
  const journal = JSON.parse(readFileSync(file, "utf8"));
  for (const [i, [name, text]] of Object.entries(steps).entries()) {
    const tag = `${9000 + i}_next_${name}`;
    journal.entries.push({ ...journal.entries.at(-1), idx: 9000 + i, tag });
    writeFileSync(join(tree, `migrations/${tag}.sql`), `-- oldest server: ${oldestServer}\n${text}\n`);
  }
  writeFileSync(file, JSON.stringify(journal));
  return versionIn(tree, remove);
}

/** How many migrations of `nextVersion` are its own. */
export const nextSteps = Object.keys(steps).length;
