"""The chapter on asynchronous copies, clusters and programmatic dependent launch."""
