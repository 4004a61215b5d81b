"""Values that the rest of the SDK is written with, such as moments and lengths of time, and small helpers of DoFns."""
