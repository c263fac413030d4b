"""The exercises and exhibits of the chapters: kernels to complete, their solutions, and kernels that are wrong."""
