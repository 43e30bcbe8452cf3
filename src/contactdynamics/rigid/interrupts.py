"""Ctrl-C and SIGTERM during a run: the present step is finished first."""

import contextlib
import signal
import threading


@contextlib.contextmanager
def held():
    """Note the first Ctrl-C or SIGTERM within the block instead of being cut short; the second one cuts at once.

    Gives a list that is empty until then. Handlers that a program has made for itself stay, and so do all outside the
    main thread, where Python takes none; then nothing is noted.
    """
    noted, before = [], {}

    def note(number, _):
        if noted:
            raise KeyboardInterrupt
        noted.append(number)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if handler is signal.default_int_handler or (number == signal.SIGTERM and handler == signal.SIG_DFL):
                before[number] = signal.signal(number, note)
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def ended_by_sigterm():
    """Within the block SIGTERM ends the program as Ctrl-C does, by `KeyboardInterrupt`: files are closed."""
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
