"""Result files: frames, checkpoints, recorders, going on from a file. They know frames, not simulations."""
