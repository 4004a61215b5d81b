"""The parts that users write: DoFns, CombineFns, state, timers, expressions, and the parameters of their methods."""
