"""Values that the rest of the SDK uses, such as timestamps, the clock and names, and small helpers of DoFns."""
