import { goTo, linkTo } from "../../data/address.ts";
import { ScreenHead } from "../../ui/screen-head.tsx";
import { DestinationForm } from "./form.tsx";

export function NewDestination() {
  return (
    <>
      <ScreenHead title="New destination" above={["Destinations", linkTo(["rules", "destinations"])]} />
      <div class="scroll">
        <DestinationForm onSaved={({ name }) => goTo(linkTo(["rules", "destinations", name]))} />
      </div>
    </>
  );
}
