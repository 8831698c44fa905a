"""What can go wrong with a database of traces, without the words of a driver."""


class TraceDatabaseFailed(Exception):
    """It cannot be used now: full, locked, gone, moved, or not answering. The same may work later."""


class TracesRefused(Exception):
    """The database is well but does not take these rows."""
