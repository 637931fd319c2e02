import { render } from "preact";
import { Frame } from "./frame/frame.tsx";
import { markTexts } from "./frame/marked-texts.ts";
import { loadFinder, screens } from "./screens.ts";

/** Draws the page, which `startPage` has started. Returns what takes it away again. */
export function drawPage(): () => void {
  markTexts();
  render(<Frame screens={screens} loadFinder={loadFinder} />, document.body);
  return () => render(null, document.body);
}
