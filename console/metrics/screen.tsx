export function MetricsScreen() { return <p>Metrics</p>; }
