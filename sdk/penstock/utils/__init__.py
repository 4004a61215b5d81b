"""Values that the rest of the SDK uses, such as timestamps and durations, and small helpers of DoFns."""
