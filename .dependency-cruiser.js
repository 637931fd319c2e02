import { importOrder, notificationLayers, strictImports } from "./scripts/import-order.ts";

/** A pattern for the files of these names; none match when there are no names. */
const filesOf = (names) => names.map((name) => (name === "gen" ? "^gen/" : `^src/${name}(/|\\.ts$)`));

const order = importOrder.map((name, index) => {
  const allowed = strictImports[name] ?? importOrder.slice(0, index);
  return {
    name: `order-${name}`,
    comment: `${name} may import ${allowed.join(", ") || "nothing of ours"} (scripts/import-order.ts)`,
    severity: "error",
    from: { path: filesOf([name]) },
    to: { path: "^(src|gen)/", pathNot: filesOf([name, ...allowed]) },
  };
});

/** The console's folders that others build on: each imports those before it alone, and no screen. */
const consoleFolders = ["data", "ui", "form", "clause"];
const consoleOrder = consoleFolders.map((name, index) => ({
  name: `console-order-${name}`,
  comment: `console/${name} may import ${consoleFolders.slice(0, index).join(", ") || "nothing of the console"}`,
  severity: "error",
  from: { path: `^console/${name}/` },
  to: { path: "^console/", pathNot: consoleFolders.slice(0, index + 1).map((each) => `^console/${each}/`) },
}));

const domain = "^src/notifications/";
const layerOrder = notificationLayers.map((name, index) => ({
  name: `notifications-order-${name}`,
  comment: `notifications/${name} may import ${notificationLayers.slice(0, index).join(", ") || "nothing of the domain"}`,
  severity: "error",
  from: { path: `${domain}${name}/` },
  to: { path: domain, pathNot: notificationLayers.slice(0, index + 1).map((each) => `${domain}${each}/`) },
}));

/** @type {import("dependency-cruiser").IConfiguration} */
export default {
  forbidden: [
    ...order,
    ...consoleOrder,
    ...layerOrder,
    {
      name: "tables-are-private",
      comment: "tables.ts is imported inside its own folder, and by a tables.ts to its right for a foreign key",
      severity: "error",
      from: { path: "^src/([^/]+)/", pathNot: "/tables\\.ts$" },
      to: { path: "^src/[^/]+/tables\\.ts$", pathNot: "^src/$1/" },
    },
    {
      name: "tables-are-private-to-folders",
      comment: "server.ts and main.ts call functions of a domain, not its tables",
      severity: "error",
      from: { path: "^src/[^/]+\\.ts$" },
      to: { path: "^src/[^/]+/tables\\.ts$" },
    },
    {
      name: "no-cycle",
      comment: "two files of a folder that need each other to run are one file, or need a third",
      severity: "error",
      from: { path: "^(src|scripts|test|bench|console)/" },
      to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only"] } },
    },
    {
      name: "no-cycle-of-types",
      comment: "in a domain with layers types, too, have one direction",
      severity: "error",
      from: { path: domain },
      to: { circular: true },
    },
    {
      name: "no-tools-in-src",
      comment: "what is shipped imports nothing that exists for development only",
      severity: "error",
      from: { path: "^src/" },
      to: { path: "^(test|bench|scripts|examples)/" },
    },
    {
      name: "no-dev-packages-in-src",
      comment: "what is shipped needs only packages of `dependencies`",
      severity: "error",
      from: { path: "^(src|gen)/" },
      to: { dependencyTypes: ["npm-dev", "npm-optional", "npm-peer", "npm-no-pkg", "npm-unknown"] },
    },
    {
      name: "no-unresolved",
      comment: "an import that leads nowhere",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "default", "types"],
      extensions: [".ts", ".tsx", ".js", ".mjs", ".json"],
    },
  },
};
