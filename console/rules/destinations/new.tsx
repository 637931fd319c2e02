import { goTo, linkTo } from "../../data/address.ts";
import { ScreenHead } from "../../ui/screen-head.tsx";
import ui from "../../ui/ui.module.css";
import { DestinationForm } from "./form.tsx";

export function NewDestination() {
  return (
    <>
      <ScreenHead title="New destination" above={["Destinations", linkTo(["rules", "destinations"])]} />
      <div class={ui.scroll}>
        <DestinationForm onSaved={({ name }) => goTo(linkTo(["rules", "destinations", name]))} />
      </div>
    </>
  );
}
