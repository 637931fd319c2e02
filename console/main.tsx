import "./frame/language.ts";
import { drawPage } from "./draw.tsx";
import { overHttp } from "./frame/calls.ts";
import { startPage } from "./frame/start.ts";
import { screens } from "./screens.ts";

startPage(overHttp());
drawPage();

// The other screens are fetched when there is nothing else to do, so that each opens at once.
setTimeout(() => {
  for (const { load } of screens) void load().catch(() => undefined);
}, 3000);
