"""One file per figure of a paper; `runner` says what such a file contains."""
