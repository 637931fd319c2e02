/**
 * `npm run check`: everything that can be said about the tree in seconds and without a database.
 * Prints a line for each step, the sizes of the tree, the whole output of steps that failed, and exits with 1 when one did. With --beside-tests it
 * leaves out the step that the whole run of tests repeats.
 */
import { spawn } from "node:child_process";
import { existsSync, globSync } from "node:fs";

process.chdir(new URL("..", import.meta.url).pathname);
process.env.PATH = `${process.cwd()}/node_modules/.bin:${process.env.PATH}`;

interface Step {
  name: string;
  command: string[];
  /** Why a step that ended well failed nevertheless: a tool that looked at nothing finds nothing. */
  doubt?: (output: string) => string | undefined;
  /** Its output is shown even where it has not failed. */
  prints?: boolean;
}

const steps: Step[] = [
  {
    name: "types",
    command: [
      "node",
      "node_modules/typescript-7/bin/tsc",
      "--incremental",
      "--tsBuildInfoFile",
      "node_modules/.cache/types.tsbuildinfo",
    ],
  },
  {
    name: "types of the console",
    command: ["node", "node_modules/typescript-7/bin/tsc", "--noEmit", "--project", "console"],
  },
  { name: "layout and documents", command: ["vitest", "run", "test/layout.test.ts", "test/documents.test.ts"] },
  { name: "generated code", command: ["node", "scripts/generate.ts", "--check"] },
  {
    name: "import order",
    command: [
      "depcruise",
      ...["src", "gen", "test", "bench", "scripts", "console"].filter((folder) => existsSync(folder)),
    ],
    doubt: sawTooLittle,
  },
  { name: "sizes, and long functions", command: ["node", "scripts/sizes.ts"], prints: true },
  { name: "format and lint", command: ["biome", "ci", "--error-on-warnings", "--colors=off", "."] },
  { name: "dead code", command: ["knip", "--no-progress", "--no-config-hints"] },
];

function sawTooLittle(output: string) {
  const [, modules, edges] = /(\d+) modules, (\d+) dependencies cruised/.exec(output) ?? [];
  const files = globSync("{src,gen}/**/*.ts").length;
  if (Number(modules) >= files && Number(edges) >= files) return undefined;
  return `saw ${modules ?? "no"} modules and ${edges ?? "no"} imports in ${files} files: is the pinned TypeScript there?`;
}

interface Outcome {
  failed: boolean;
  output: string;
  durationMs: number;
}

function run({ command, doubt }: Step): Promise<Outcome> {
  const [program = "", ...args] = command;
  const startMs = performance.now();
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  let output = "";
  const child = spawn(program, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, TEST_DATABASE_URL: "none", NO_COLOR: "1", FORCE_COLOR: undefined },
  });
  child.stdout.on("data", (text) => {
    output += text;
  });
  child.stderr.on("data", (text) => {
    output += text;
  });
  const end = (problem: string | undefined) => {
    if (problem !== undefined) output += `${problem}\n`;
    resolve({ failed: problem !== undefined, output, durationMs: performance.now() - startMs });
  };
  child.on("error", (error) => end(error.message));
  child.on("close", (code) => end(code === 0 ? doubt?.(output) : `exit code ${code}`));
  return promise;
}

const waiting = steps.filter(({ command }) => command[0] !== "vitest" || !process.argv.includes("--beside-tests"));
async function work() {
  for (let step = waiting.shift(); step !== undefined; step = waiting.shift()) {
    const { failed, output, durationMs } = await run(step);
    console.log(`${failed ? "FAILED" : "ok    "} ${step.name} (${(durationMs / 1000).toFixed(1)} s)`);
    if (failed || step.prints) console.log(output.trimEnd().replaceAll(/^/gm, "    "));
    if (failed) process.exitCode = 1;
  }
}
// The compiler keeps one processor busy; the other steps take turns on the second.
await Promise.all([work(), work()]);
