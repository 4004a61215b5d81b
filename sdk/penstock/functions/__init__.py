"""What users write: DoFns, CombineFns, state, timers and expressions, with what their methods ask for."""
