"""Pictures in steps, drawn from what the emulator recorded."""
