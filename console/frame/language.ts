// A browser that was started with the C locale calls its language `en-US@posix`, which is no language tag: uPlot fails to load there.
try {
  new Intl.NumberFormat(navigator.language);
} catch {
  Object.defineProperty(navigator, "language", { value: "en" });
}
