import { useSignal } from "@preact/signals";
import { useLoaded } from "../data/loaded.ts";
import type { ColumnDialogProps } from "./column-dialog.tsx";

const loadDialog = () => import("./column-dialog.tsx");

/** Shows the button that opens the choice of columns. */
export function ColumnChoice(props: Omit<ColumnDialogProps, "close">) {
  const open = useSignal(false);
  const close = () => {
    open.value = false;
  };
  const dialog = useLoaded(loadDialog, open.value, close);
  return (
    <>
      <button
        type="button"
        onClick={() => {
          open.value = true;
        }}
      >
        Columns
      </button>
      {open.value && dialog && <dialog.ColumnDialog {...props} close={close} />}
    </>
  );
}
